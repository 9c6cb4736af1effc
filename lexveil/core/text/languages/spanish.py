"""Spanish: function words, connectors, abbreviations."""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) except estad, estada, estadas, estado,
# estados, habida, habidas, habido, habidos, tened, tenida, tenidas, tenido, tenidos, and further
# words of closed classes.
_FUNCTION_WORDS = """
a ahí al algo algunas algunos allí ante antes aquel aquella aquellas aquello aquellos aquí así
aunque aún bajo cada casi como con contra cual cuales cualquier cualquiera cuando cuanto cuya cuyas
cuyo cuyos cuál cuáles cuándo cuánto cómo de debe deben deber del demás dentro desde después donde
durante dónde e el ella ellas ellos en entonces entre era erais eran eras eres es esa esas ese eso
esos esta estaba estabais estaban estabas estamos estando estar estaremos estará estarán estarás
estaré estaréis estaría estaríais estaríamos estarían estarías estas este estemos esto estos estoy
estuve estuviera estuvierais estuvieran estuvieras estuvieron estuviese estuvieseis estuviesen
estuvieses estuvimos estuviste estuvisteis estuviéramos estuviésemos estuvo está estábamos estáis
están estás esté estéis estén estés fue fuera fuerais fueran fueras fueron fuese fueseis fuesen
fueses fui fuimos fuiste fuisteis fuéramos fuésemos ha haber habiendo habremos habrá habrán habrás
habré habréis habría habríais habríamos habrían habrías habéis había habíais habíamos habían habías
hacia han has hasta hay haya hayamos hayan hayas hayáis he hemos hube hubiera hubierais hubieran
hubieras hubieron hubiese hubieseis hubiesen hubieses hubimos hubiste hubisteis hubiéramos
hubiésemos hubo la las le les lo los luego me mi mientras mis misma mismas mismo mismos mucho muchos
muy más mí mía mías mío míos nada ni ninguna ninguno ningún no nos nosotras nosotros nuestra
nuestras nuestro nuestros o os otra otras otro otros para pero poco podría podía por porque puede
pueden que quien quienes qué se sea seamos sean seas según ser seremos será serán serás seré seréis
sería seríais seríamos serían serías seáis si sido siendo sin sino sobre sois solo somos son soy su
sus suya suyas suyo suyos sí sólo tal tales también tampoco tan tanto te tendremos tendrá tendrán
tendrás tendré tendréis tendría tendríais tendríamos tendrían tendrías tenemos tener tenga tengamos
tengan tengas tengo tengáis teniendo tenéis tenía teníais teníamos tenían tenías ti tiene tienen
tienes toda todas todavía todo todos tras tu tus tuve tuviera tuvierais tuvieran tuvieras tuvieron
tuviese tuvieseis tuviesen tuvieses tuvimos tuviste tuvisteis tuviéramos tuviésemos tuvo tuya tuyas
tuyo tuyos tú un una unas uno unos usted ustedes vosotras vosotros vuestra vuestras vuestro vuestros
y ya yo él éramos
"""
_CONNECTORS = """
el la los las lo un una unos unas de del a al en por para con sin sobre y e o u
"""
_ABBREVIATIONS = """
a adj admón afmo ap apdo arq art arts atte av avda b bco c cap caps cc cf comp coord cra cta cía d
dcha dep dept depto dic dir dna doc dom dpto dr dra dras drs dª dña e ed edo eds ee ej ene entlo esq
etc excma excmo ext f fdo feb febr fig fr gob gral hno hnos i ibid ilma ilmo incl ing inst intr izda
izdo j jr jue jul jun k l lic ltd ltda lám m mié mons mr mrs ms mtro máx mín n nov ntra ntro núm
núms o oct op p pbro pdo pp ppal prof profa prov ptas pts pza pág págs párr párrs q rda rdo ref reg
rep rev rte s sdad sec secc seg sept set sgte sgto sig sigs sr sra sras sres srta srtas ss sta sto
subdir suc sáb tb tel teléf tfno tomo trad tít ud uds univ urb uu v vd vds vid vol vols vs vto
"""

SPANISH = Language(
    code="es",
    name="Spanish",
    function_words=frozenset(_FUNCTION_WORDS.split()),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
)
