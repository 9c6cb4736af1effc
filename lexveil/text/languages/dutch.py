"""Dutch: function words, connectors, abbreviations."""

from __future__ import annotations

from lexveil.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE).
_SNOWBALL = """
aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een eens en er ge geen
geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je kan kon kunnen maar me meer
men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u uit
uw van veel voor want waren was wat werd wezen wie wil worden wordt zal ze zelf zich zij zijn zo zonder zou
"""
# Further words of closed classes.
_FURTHER = """
'k 'm 'n 'r 's 't achter bijna binnen buiten d'r daarbij daarin daarmee daarna daarom daarop daarvan daarvoor
dezelfde echter eigen elk elke enige enkele erg ermee erop ervan even gaan hadden hare hen hierbij hoewel immers
indien jij jou jouw jullie konden kunt langs m'n mag moest moesten moeten mogen naast nadat nooit ofwel omhoog
ondanks onze opdat opnieuw sinds sommige soms steeds terwijl tijdens totdat tussen uwe vanaf vandaar vanuit vanwege
volgens vooral voordat waar waarbij waarin waarmee waarom waarvan wanneer we wederom weer wel welk welke werden
wiens wij z'n zelfs zo'n zodat zouden zowel zulke
"""
_CONNECTORS = """
de het een 't 'n van aan bij in op met voor door uit over onder naar om tot zonder te ter ten en of
"""
_ABBREVIATIONS = """
a aant aanw abs adm afb afd afl alg apr arr art aug b bc bijl bijv bijz blz bv ca cf chr co comm corr d dec def derg
dgl dhr diss div dr drs dw dwz e ed eds eig enz etc ev evt ex excl fa fam feb febr fig g geb gebr gem gen get gez h
hfdst hfst hist hs i ibid incl ing inkl inl ir jan jhr jkvr jl jr kap kath kol lat lt ltd luit m maj max mej mevr
mgr min mld mln mr mrs ms mw n nam ned nl nov nr nrs nvt o okt ong oorspr opm orig ov p pag par penn pl plm pp pres
prof prot prov ps q r red ref resp rev s sec secr sept sgt sr st str subs t tab tel tw tzt uitg univ v verg verl
verm vert vertal vgl vlg vnl vol voorz vs w wnd z zg zgn zn
"""

DUTCH = Language(
    code="nl",
    name="Dutch",
    function_words=frozenset((*_SNOWBALL.split(), *_FURTHER.split())),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    leading=frozenset("s t n k m r".split()),
)
