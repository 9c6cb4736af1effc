"""German: function words, connectors, abbreviations."""

from __future__ import annotations

from lexveil.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) but for anderr, machen, unse, unsem, unsen, unses, weg.
_SNOWBALL = """
aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes anderm andern anders
auch auf aus bei bin bis bist da damit dann das dasselbe dazu daß dein deine deinem deinen deiner deines dem
demselben den denn denselben der derer derselbe derselben des desselben dessen dich die dies diese dieselbe
dieselben diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines einig einige einigem
einigen einiger einiges einmal er es etwas euch euer eure eurem euren eurer eures für gegen gewesen hab habe haben
hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist jede jedem
jeden jeder jedes jene jenem jenen jener jenes jetzt kann kein keine keinem keinen keiner keines können könnte man
manche manchem manchen mancher manches mein meine meinem meinen meiner meines mich mir mit muss musste nach nicht
nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seines selbst sich sie sind so solche solchem
solchen solcher solches soll sollte sondern sonst um und uns unser unter viel vom von vor war waren warst was weil
weiter welche welchem welchen welcher welches wenn werde werden wie wieder will wir wird wirst wo wollen wollte
während würde würden zu zum zur zwar zwischen über
"""
# Further words of closed classes.
_FURTHER = """
außer außerdem beim bereits bevor bzw dabei dadurch dafür dagegen daher dahin daran darauf daraus darf darin darum
darüber dass davon davor denen deren durfte dürfen eben entweder etwa falls habt hast hattest hierbei hierzu hinaus
hätte hätten je jedoch kaum konnte konnten könnten mag mal mussten müssen obwohl sei seid seien seit sogar sollten
sowie sowohl trotz wann warum weder wegen wem wen wessen woher wohin wohl wollt worden wurde wurden wäre wären
"""
_CONNECTORS = """
der die das den dem des ein eine einen einem einer eines von vom zu zum zur in im ins an am ans auf aufs aus bei
beim mit für durch um ohne nach über unter vor und oder
"""
_ABBREVIATIONS = """
a abb abs abschn allg apr art aufl aug ausg b bd bde bes best betr bez bgl bzgl bzw ca chr d dergl dez dgl dipl dr e
ebd ed ehem eigtl einschl entspr erg etc eur ev evtl exkl fa fam feb febr fig folg forts fr frl g geb gebr gem ges
gest gez ggf ggfs h hbf hg hl hrn hrsg i ing inkl insb inst jan jh jhd jhdt jr jun jän kap kath kfm kgl konf lt ltd
ltg luth m mag max mia min mind mio mr mrd mrs ms mus mwst nachf nat nov nr o okt ord orig ph phil pl pp priv prof
prot publ red ref reg rel resp rev röm s sekr sen sept sog sogen sp spez sr st std stellv str stud tel tgl theol tsd
u uff univ urspr usf usw v verf verh verl vgl vol vorm vors vs w wg wiss z zb zt zus zw zz zzgl zzt ä
"""

GERMAN = Language(
    code="de",
    name="German",
    function_words=frozenset((*_SNOWBALL.split(), *_FURTHER.split())),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    has_ordinals=True,
)
