"""German: function words, connectors, abbreviations."""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) except anderr, machen, unse, unsem, unsen,
# unses, weg, and further words of closed classes.
_FUNCTION_WORDS = """
aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes anderm
andern anders auch auf aus außer außerdem bei beim bereits bevor bin bis bist bzw da dabei dadurch
dafür dagegen daher dahin damit dann daran darauf daraus darf darin darum darüber das dass dasselbe
davon davor dazu daß dein deine deinem deinen deiner deines dem demselben den denen denn denselben
der deren derer derselbe derselben des desselben dessen dich die dies diese dieselbe dieselben
diesem diesen dieser dieses dir doch dort du durch durfte dürfen eben ein eine einem einen einer
eines einig einige einigem einigen einiger einiges einmal entweder er es etwa etwas euch euer eure
eurem euren eurer eures falls für gegen gewesen hab habe haben habt hast hat hatte hatten hattest
hier hierbei hierzu hin hinaus hinter hätte hätten ich ihm ihn ihnen ihr ihre ihrem ihren ihrer
ihres im in indem ins ist je jede jedem jeden jeder jedes jedoch jene jenem jenen jener jenes jetzt
kann kaum kein keine keinem keinen keiner keines konnte konnten können könnte könnten mag mal man
manche manchem manchen mancher manches mein meine meinem meinen meiner meines mich mir mit muss
musste mussten müssen nach nicht nichts noch nun nur ob obwohl oder ohne sehr sei seid seien sein
seine seinem seinen seiner seines seit selbst sich sie sind so sogar solche solchem solchen solcher
solches soll sollte sollten sondern sonst sowie sowohl trotz um und uns unser unter viel vom von vor
wann war waren warst warum was weder wegen weil weiter welche welchem welchen welcher welches wem
wen wenn werde werden wessen wie wieder will wir wird wirst wo woher wohin wohl wollen wollt wollte
worden wurde wurden während wäre wären würde würden zu zum zur zwar zwischen über
"""
_CONNECTORS = """
der die das den dem des ein eine einen einem einer eines von vom zu zum zur in im ins an am ans auf
aufs aus bei beim mit für durch um ohne nach über unter vor und oder
"""
_ABBREVIATIONS = """
a abb abs abschn allg apr art aufl aug ausg b bd bde bes best betr bez bgl bzgl bzw ca chr d dergl
dez dgl dipl dr e ebd ed ehem eigtl einschl entspr erg etc eur ev evtl exkl fa fam feb febr fig folg
forts fr frl g geb gebr gem ges gest gez ggf ggfs h hbf hg hl hrn hrsg i ing inkl insb inst jan jh
jhd jhdt jr jun jän kap kath kfm kgl konf lt ltd ltg luth m mag max mia min mind mio mr mrd mrs ms
mus mwst nachf nat nov nr o okt ord orig ph phil pl pp priv prof prot publ red ref reg rel resp rev
röm s sekr sen sept sog sogen sp spez sr st std stellv str stud tel tgl theol tsd u uff univ urspr
usf usw v verf verh verl vgl vol vorm vors vs w wg wiss z zb zt zus zw zz zzgl zzt ä
"""

GERMAN = Language(
    code="de",
    name="German",
    function_words=frozenset(_FUNCTION_WORDS.split()),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    has_ordinals=True,
)
