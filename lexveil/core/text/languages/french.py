"""French: function words, connectors, abbreviations, elisions."""

from __future__ import annotations

from lexveil.core.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) except avions, été, étée, étées, étés, and
# further words of closed classes. Elided words get their apostrophe below.
_FUNCTION_WORDS = """
afin ai aie aient aies ainsi ait alors après as assez au aucun aucune aujourd'hui auquel aura aurai
auraient aurais aurait auras aurez auriez aurions aurons auront aussi autre autres aux auxquels
avaient avais avait avant avec avez aviez avoir avons ayant ayez ayons beaucoup car ce ceci cela
celle celles celui celà cependant certain certaines certains ces cet cette chaque chez comme comment
contre dans de dedans dehors depuis derrière des desquelles desquels devant donc dont du duquel
durant dès elle en encore entre envers es est et eu eue eues eurent eus eusse eussent eusses eussiez
eussions eut eux eûmes eût eûtes furent fus fusse fussent fusses fussiez fussions fut fûmes fût
fûtes hors ici il ils je jusque la laquelle le lequel les lesquelles lesquels leur leurs lorsque lui
ma mais malgré me mes mien mienne miennes miens moi moins mon même ne ni non nos notre nous nul
néanmoins nôtre on ont ou où par parce parmi pas pendant peu plus plusieurs pour pourquoi presque
près puis puisque quand quant que quel quelle quelles quelqu'un quelque quelques quels qui quoi
quoique rien sa sans sauf se selon sera serai seraient serais serait seras serez seriez serions
serons seront ses si sien sienne siennes siens sinon soi soient sois soit sommes son sont sous soyez
soyons suis sur ta tandis tant te tel telle telles tels tes tien toi ton toujours tous tout toute
toutes trop très tu un une vers voici voilà vos votre vous vôtre y à étaient étais était étant étiez
étions êtes être
"""
_CONNECTORS = """
le la les un une des du de d' l' à au aux en dans par pour avec sans sur sous chez et ou
"""
_ABBREVIATIONS = """
adj al ann apr art auj av avr bd boul cf chap col coll comm dec dept dir dr drs déc dép ed env etc
ex exp fasc fig fém fév févr gal gouv gén hab ibid id inf intro jan janv juil lt ltd m masc max me
mgr min mlle mlles mm mme mmes mr mrs ms nb no nos nov oct op orig p ph pl pp pr prof préf rel réd
réf rév sec sect sept sing sq sqq st ste sts suiv sup suppl t tit trad tél univ v var vol vs vx éd
"""
# Elided words as they are written before a vowel.
_ELISIONS = """
c d j l m n s t ç qu jusqu lorsqu puisqu quoiqu
"""

FRENCH = Language(
    code="fr",
    name="French",
    function_words=frozenset((*_FUNCTION_WORDS.split(), *(f"{one}'" for one in _ELISIONS.split()))),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    elisions=frozenset(_ELISIONS.split()),
)
