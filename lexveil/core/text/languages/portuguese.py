"""Portuguese: function words, connectors, abbreviations, elisions."""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) except fôramos, fôssemos, and further words
# of closed classes. Elided words get their apostrophe below.
_FUNCTION_WORDS = """
a agora ainda algo algum alguma algumas alguns ali ambas ambos ante antes ao aos após aquela aquelas
aquele aqueles aqui aquilo as assim através atrás até aí cada com comigo como consigo contigo contra
contudo cuja cujas cujo cujos cá da daquela daquelas daquele daqueles daqui das de dela delas dele
deles depois desde dessa dessas desse desses desta destas deste destes deve devem disso disto do dos
dum duma durante e ela elas ele eles em embora enquanto entre entretanto então era eram essa essas
esse esses esta estamos estar estas estava estavam este esteja estejam estejamos estes esteve estive
estivemos estiver estivera estiveram estiverem estivermos estivesse estivessem estivéramos
estivéssemos estou está estávamos estão eu exceto foi fomos for fora foram forem formos fosse fossem
fui haja hajam hajamos havemos haver hei houve houvemos houver houvera houveram houverei houverem
houveremos houveria houveriam houvermos houverá houverão houveríamos houvesse houvessem houvéramos
houvéssemos há hão isso isto já lhe lhes logo lá mais mas me mediante menos mesma mesmas mesmo
mesmos meu meus minha minhas muita muitas muito muitos na nada naquela naquelas naquele naqueles nas
nela nelas nele neles nem nenhum nenhuma nessa nessas nesse nesses nesta nestas neste nestes ninguém
no nos nossa nossas nosso nossos num numa nunca não nós o onde ora os ou outra outras outro outros
para pela pelas pelo pelos perante pode podem poderia podia pois por porque portanto porém pouca
poucas pouco poucos quais qual qualquer quando quanta quantas quanto quantos quase que quem quê se
seja sejam sejamos sem sempre senão ser serei seremos seria seriam será serão seríamos seu seus sob
sobre somos sou sua suas são só tais tal também tampouco tanta tantas tanto tantos te tem temos
tenha tenham tenhamos tenho ter terei teremos teria teriam terá terão teríamos teu teus teve tinha
tinham tive tivemos tiver tivera tiveram tiverem tivermos tivesse tivessem tivéramos tivéssemos toda
todas todavia todo todos tu tua tuas tudo tão tém tínhamos um uma umas uns você vocês vos vossa
vossas vosso vossos à às éramos
"""
_CONNECTORS = """
o a os as um uma uns umas de do da dos das d' em no na nos nas num numa por pelo pela pelos pelas
para com sem sobre sob ao aos à às e ou
"""
_ABBREVIATIONS = """
a abr adj adv ago al alm apart aprox apto art arts assoc av bl c cap caps cel cf cia cod col com
cond cont coord d dep depto dez dir doc dr dra dras drs e ed edif eds eng enga esp esq etc ex exa
excia exma exmo ext f fac fasc febr fev fig figs fl fls fr gal gen gov hab i ibid ilma ilmo inc incl
inf ing inst int jan jr jul jun lda lic ltd ltda min mons mr mrs ms mun máx mín n nov núm o obs op
org orgs out p par pe pg pgs pp pref pres proc prof profa profas profs prov pte publ pág págs pça
qdo ref reg rem rep res rev s sec seg sen set sgt sr sra sras sres srta srtas sta sto sub séc sécs
tel trad trav téc tít univ v vol vols vs vv
"""
# Elided words as they are written before a vowel.
_ELISIONS = """
d
"""

PORTUGUESE = Language(
    code="pt",
    name="Portuguese",
    function_words=frozenset((*_FUNCTION_WORDS.split(), *(f"{one}'" for one in _ELISIONS.split()))),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    elisions=frozenset(_ELISIONS.split()),
)
