"""Dutch: function words, connectors, abbreviations."""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) and further words of closed classes.
_FUNCTION_WORDS = """
'k 'm 'n 'r 's 't aan achter al alles als altijd andere ben bij bijna binnen buiten d'r daar daarbij
daarin daarmee daarna daarom daarop daarvan daarvoor dan dat de der deze dezelfde die dit doch doen
door dus echter een eens eigen elk elke en enige enkele er erg ermee erop ervan even gaan ge geen
geweest haar had hadden hare heb hebben heeft hem hen het hier hierbij hij hoe hoewel hun iemand
iets ik immers in indien is ja je jij jou jouw jullie kan kon konden kunnen kunt langs m'n maar mag
me meer men met mij mijn moest moesten moet moeten mogen na naar naast nadat niet niets nog nooit nu
of ofwel om omdat omhoog ondanks onder ons onze ook op opdat opnieuw over reeds sinds sommige soms
steeds te tegen terwijl tijdens toch toen tot totdat tussen u uit uw uwe van vanaf vandaar vanuit
vanwege veel volgens voor vooral voordat waar waarbij waarin waarmee waarom waarvan wanneer want
waren was wat we wederom weer wel welk welke werd werden wezen wie wiens wij wil worden wordt z'n
zal ze zelf zelfs zich zij zijn zo zo'n zodat zonder zou zouden zowel zulke
"""
_CONNECTORS = """
de het een 't 'n van aan bij in op met voor door uit over onder naar om tot zonder te ter ten en of
"""
_ABBREVIATIONS = """
a aant aanw abs adm afb afd afl alg apr arr art aug b bc bijl bijv bijz blz bv ca cf chr co comm
corr d dec def derg dgl dhr diss div dr drs dw dwz e ed eds eig enz etc ev evt ex excl fa fam feb
febr fig g geb gebr gem gen get gez h hfdst hfst hist hs i ibid incl ing inkl inl ir jan jhr jkvr jl
jr kap kath kol lat lt ltd luit m maj max mej mevr mgr min mld mln mr mrs ms mw n nam ned nl nov nr
nrs nvt o okt ong oorspr opm orig ov p pag par penn pl plm pp pres prof prot prov ps q r red ref
resp rev s sec secr sept sgt sr st str subs t tab tel tw tzt uitg univ v verg verl verm vert vertal
vgl vlg vnl vol voorz vs w wnd z zg zgn zn
"""

DUTCH = Language(
    code="nl",
    name="Dutch",
    function_words=frozenset(_FUNCTION_WORDS.split()),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    leading=frozenset("s t n k m r".split()),
)
