"""Italian: function words, connectors, abbreviations, elisions."""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) except fecero, stemmo, steste, stette,
# stettero, stetti, stia, and further words of closed classes. Elided words get their apostrophe
# below.
_FUNCTION_WORDS = """
a abbia abbiamo abbiano abbiate ad agli ai al alla alle allo allora altra altre altri altro anche
ancora appena attraverso avemmo avendo avere avesse avessero avessi avessimo aveste avesti avete
aveva avevamo avevano avevate avevi avevo avrai avranno avrebbe avrebbero avrei avremmo avremo
avreste avresti avrete avrà avrò avuta avute avuti avuto benché bensì che chi ci ciascuna ciascuno
cioè ciò coi col colei coloro colui come con contro così cui da dagli dai dal dalla dalle dallo
degli dei del della delle dello dentro deve devono di dopo dove dunque durante e ebbe ebbero ebbi
ecco ed entro eppure era erano eravamo eravate eri ero essa esse essendo essere essi esso faccia
facciamo facciano facciate faccio facemmo facendo facesse facessero facessi facessimo faceste
facesti faceva facevamo facevano facevate facevi facevo fai fanno farai faranno farebbe farebbero
farei faremmo faremo fareste faresti farete farà farò fece feci finché fino forse fosse fossero
fossi fossimo foste fosti fra fu fui fummo fuori furono già giù gli ha hai hanno ho i il in infatti
inoltre invece io la laddove le lei li lo loro lui lì ma mediante meno mentre mi mia mie miei mio
mo' molta molte molti molto ne negli nei nel nella nelle nello nemmeno neppure nessuna nessuno
niente noi non nostra nostre nostri nostro nulla né o ogni ognuno oltre oppure ora ovvero per perché
perciò però piuttosto più po' poca poche pochi poco poi poiché possono potere poteva pure può qua
qualche qualcosa qualcuno quale quando quanta quante quanti quanto quasi quella quelle quelli quello
questa queste questi questo qui quindi sarai saranno sarebbe sarebbero sarei saremmo saremo sareste
saresti sarete sarà sarò se sebbene secondo sei sempre senza si sia siamo siano siate siete sono
sopra sotto sta stai stando stanno starai staranno starebbe starebbero starei staremmo staremo
stareste staresti starete starà starò stava stavamo stavano stavate stavi stavo stessa stesse
stessero stessi stessimo stesso stesti stiamo stiano stiate sto su sua sue sugli sui sul sulla sulle
sullo suo suoi sé tale tali talmente tanta tante tanti tanto ti tra tu tua tue tuo tuoi tutta tutte
tutti tutto un una uno verso vi voi vostra vostre vostri vostro è
"""
_CONNECTORS = """
il lo la i gli le un uno una l' un' di a da in con su per tra fra del dello della dei degli delle
dell' d' al allo alla ai agli alle all' dal dallo dalla dai dagli dalle dall' nel nello nella nei
negli nelle nell' col coi sul sullo sulla sui sugli sulle sull' senza e ed o od
"""
_ABBREVIATIONS = """
a all app apr arch arcip art artt avv b bibl c cap capp card cav cc cd centr cfr cod col comm cons
corr d dic dir div dom dott dottssa dr dra dssa e ecc ed edd egr es etc f fasc feb ferr fig figg fr
g gen genn gent geom gg giov giu h i ibid id ill ing int istr jr lett lib lit ltd lug m mag magg mar
mart mass max mer min mons mr mrs ms mss mus n nn nov ns num obb ogg on op ott p pag pagg par pp
pref pres prof profssa prov ps rag rec red ref reg rev rif rist s sab sec secc seg segg sen sett sez
sig sigg signa sigra soc sost spett ss sta str suppl t tab tel tip tit tr trad univ v vd vol voll vs
"""
# Elided words as they are written before a vowel.
_ELISIONS = """
l un d c m t s v n gl dell all dall nell sull coll dagl degl agl negl sugl quest quell anch tutt com
dov cos quand senz nessun ciascun qualcun alcun quant
"""
# elided words that are not function words
_OF_CONTENT = "bell sant mezz grand buon brav trent vent pover".split()

ITALIAN = Language(
    code="it",
    name="Italian",
    function_words=frozenset((*_FUNCTION_WORDS.split(), *(f"{one}'" for one in _ELISIONS.split()))),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    elisions=frozenset((*_ELISIONS.split(), *_OF_CONTENT)),
    trailing=frozenset("po mo be".split()),
)
