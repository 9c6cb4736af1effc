"""Portuguese: function words, connectors, abbreviations, elisions."""

from __future__ import annotations

from lexveil.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) but for fôramos, fôssemos; those elided have their
# apostrophe below.
_SNOWBALL = """
a ao aos aquela aquelas aquele aqueles aquilo as até com como da das de dela delas dele deles depois do dos e ela
elas ele eles em entre era eram essa essas esse esses esta estamos estas estava estavam este esteja estejam
estejamos estes esteve estive estivemos estiver estivera estiveram estiverem estivermos estivesse estivessem
estivéramos estivéssemos estou está estávamos estão eu foi fomos for fora foram forem formos fosse fossem fui haja
hajam hajamos havemos hei houve houvemos houver houvera houveram houverei houverem houveremos houveria houveriam
houvermos houverá houverão houveríamos houvesse houvessem houvéramos houvéssemos há hão isso isto já lhe lhes mais
mas me mesmo meu meus minha minhas muito na nas nem no nos nossa nossas nosso nossos num numa não nós o os ou para
pela pelas pelo pelos por qual quando que quem se seja sejam sejamos sem serei seremos seria seriam será serão
seríamos seu seus somos sou sua suas são só também te tem temos tenha tenham tenhamos tenho terei teremos teria
teriam terá terão teríamos teu teus teve tinha tinham tive tivemos tiver tivera tiveram tiverem tivermos tivesse
tivessem tivéramos tivéssemos tu tua tuas tém tínhamos um uma você vocês vos à às éramos
"""
# Further words of closed classes.
_FURTHER = """
agora ainda algo algum alguma algumas alguns ali ambas ambos ante antes após aqui assim através atrás aí cada comigo
consigo contigo contra contudo cuja cujas cujo cujos cá daquela daquelas daquele daqueles daqui desde dessa dessas
desse desses desta destas deste destes deve devem disso disto dum duma durante embora enquanto entretanto então
estar exceto haver logo lá mediante menos mesma mesmas mesmos muita muitas muitos nada naquela naquelas naquele
naqueles nela nelas nele neles nenhum nenhuma nessa nessas nesse nesses nesta nestas neste nestes ninguém nunca onde
ora outra outras outro outros perante pode podem poderia podia pois porque portanto porém pouca poucas pouco poucos
quais qualquer quanta quantas quanto quantos quase quê sempre senão ser sob sobre tais tal tampouco tanta tantas
tanto tantos ter toda todas todavia todo todos tudo tão umas uns vossa vossas vosso vossos
"""
_CONNECTORS = """
o a os as um uma uns umas de do da dos das d' em no na nos nas num numa por pelo pela pelos pelas para com sem sobre
sob ao aos à às e ou
"""
_ABBREVIATIONS = """
a abr adj adv ago al alm apart aprox apto art arts assoc av bl c cap caps cel cf cia cod col com cond cont coord d
dep depto dez dir doc dr dra dras drs e ed edif eds eng enga esp esq etc ex exa excia exma exmo ext f fac fasc febr
fev fig figs fl fls fr gal gen gov hab i ibid ilma ilmo inc incl inf ing inst int jan jr jul jun lda lic ltd ltda
min mons mr mrs ms mun máx mín n nov núm o obs op org orgs out p par pe pg pgs pp pref pres proc prof profa profas
profs prov pte publ pág págs pça qdo ref reg rem rep res rev s sec seg sen set sgt sr sra sras sres srta srtas sta
sto sub séc sécs tel trad trav téc tít univ v vol vols vs vv
"""
# As they are written before a vowel.
_ELISIONS = """
d
"""

PORTUGUESE = Language(
    code="pt",
    name="Portuguese",
    function_words=frozenset((*_SNOWBALL.split(), *_FURTHER.split(), *(f"{one}'" for one in _ELISIONS.split()))),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    elisions=frozenset(_ELISIONS.split()),
)
