"""French: function words, connectors, abbreviations, elisions."""

from __future__ import annotations

from lexveil.text.languages.base import Language

# The stop words of Snowball (3-clause BSD, see NOTICE) but for avions, été, étée, étées, étés; those elided have
# their apostrophe below.
_SNOWBALL = """
ai aie aient aies ait as au aura aurai auraient aurais aurait auras aurez auriez aurions aurons auront aux avaient
avais avait avec avez aviez avons ayant ayez ayons ce ceci cela celà ces cet cette dans de des du elle en es est et
eu eue eues eurent eus eusse eussent eusses eussiez eussions eut eux eûmes eût eûtes furent fus fusse fussent fusses
fussiez fussions fut fûmes fût fûtes ici il ils je la le les leur leurs lui ma mais me mes moi mon même ne nos notre
nous on ont ou par pas pour que quel quelle quelles quels qui sa sans se sera serai seraient serais serait seras
serez seriez serions serons seront ses soi soient sois soit sommes son sont soyez soyons suis sur ta te tes toi ton
tu un une vos votre vous y à étaient étais était étant étiez étions êtes
"""
# Further words of closed classes.
_FURTHER = """
afin ainsi alors après assez aucun aucune aujourd'hui auquel aussi autre autres auxquels avant avoir beaucoup car
celle celles celui cependant certain certaines certains chaque chez comme comment contre dedans dehors depuis
derrière desquelles desquels devant donc dont duquel durant dès encore entre envers hors jusque laquelle lequel
lesquelles lesquels lorsque malgré mien mienne miennes miens moins ni non nul néanmoins nôtre où parce parmi pendant
peu plus plusieurs pourquoi presque près puis puisque quand quant quelqu'un quelque quelques quoi quoique rien sauf
selon si sien sienne siennes siens sinon sous tandis tant tel telle telles tels tien toujours tous tout toute toutes
trop très vers voici voilà vôtre être
"""
_CONNECTORS = """
le la les un une des du de d' l' à au aux en dans par pour avec sans sur sous chez et ou
"""
_ABBREVIATIONS = """
adj al ann apr art auj av avr bd boul cf chap col coll comm dec dept dir dr drs déc dép ed env etc ex exp fasc fig
fém fév févr gal gouv gén hab ibid id inf intro jan janv juil lt ltd m masc max me mgr min mlle mlles mm mme mmes mr
mrs ms nb no nos nov oct op orig p ph pl pp pr prof préf rel réd réf rév sec sect sept sing sq sqq st ste sts suiv
sup suppl t tit trad tél univ v var vol vs vx éd
"""
# As they are written before a vowel.
_ELISIONS = """
c d j l m n s t ç qu jusqu lorsqu puisqu quoiqu
"""

FRENCH = Language(
    code="fr",
    name="French",
    function_words=frozenset((*_SNOWBALL.split(), *_FURTHER.split(), *(f"{one}'" for one in _ELISIONS.split()))),
    connectors=frozenset(_CONNECTORS.split()),
    abbreviations=frozenset(_ABBREVIATIONS.split()),
    elisions=frozenset(_ELISIONS.split()),
)
