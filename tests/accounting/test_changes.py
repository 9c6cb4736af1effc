"""Changes of tokens, compared by hand and with the engine for every strategy and layout."""

from dataclasses import replace

import numpy as np
import pytest

from lexveil.core.accounting.budgets import Action
from lexveil.core.accounting.changes import Fate, Part, changes_of, output_spans
from lexveil.core.text.encode import Lexicon, encode
from lexveil.io.artifacts.model import Model
from lexveil.io.request import Request
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.engine import WordEngine
from lexveil.release.settings import settings_of

TEXTS = [
    'The Prime Minister said: "Zorblax, 2-3 of THEM"   ...\n\nfire services in New South Wales.',
    "",
    "   ",
    "¿Qué? _under_ ß ĐÉ… (a) b\u200dc @user www.example.org/x?y=1",
]
KEPT = Action.KEPT
PERTURBED = Action.PERTURBED
DROPPED = Action.DROPPED
SAMPLED = Action.SAMPLED


def test_by_hand():
    """Six tokens, one of each fate but two replaced; the first became two words."""
    lexicon = Lexicon.build("word", ["labor_party", "rose", "fell", "here"], None)
    text = "Shares ROSE here, Zorblax fell  "
    encoded = encode([text], lexicon)
    action = np.array([PERTURBED, PERTURBED, DROPPED, KEPT, SAMPLED, PERTURBED], dtype=np.int8)
    rows = np.array([0, 2, -1, -1, 3, 2])
    (changes,) = changes_of(encoded, [text], ["labor party fell, here fell"], action, rows, lexicon)
    space = Part(" ", None, -1)
    assert changes.output_parts() == [
        Part("labor party", Fate.REPLACED, 0),
        space,
        Part("fell", Fate.REPLACED, 1),
        Part(",", Fate.KEPT, 3),
        space,
        Part("here", Fate.RANDOM, 4),
        space,
        Part("fell", Fate.UNCHANGED, 5),
    ]
    assert changes.source_parts()[4] == Part("here", Fate.DROPPED, 2)
    assert changes.counts() == {"replaced": 2, "random": 1, "unchanged": 1, "kept": 1, "dropped": 1}
    assert "".join(part.text for part in changes.source_parts(2)) == "Shares ROSE"
    assert "".join(part.text for part in changes.output_parts(3)) == "labor party fell"
    assert changes.source_of(4) == "Zorblax"


@pytest.mark.parametrize("wrong", ["labor senate", "labor party fell more", "party fell", ""])
def test_another_output_is_found_out(wrong):
    with pytest.raises(ValueError, match="character"):
        output_spans(wrong, ["labor party", None, "fell"])


@pytest.mark.parametrize("strategy", ["S1", "S3", "S4"])
@pytest.mark.parametrize("keep_layout", [False, True])
def test_of_what_the_engine_wrote(built, strategy, keep_layout):
    """Parts join to both texts, every token is marked once, and each fate is the engine's
    action."""
    model = Model.load()
    how = Request(mechanism="madlib", strategy=strategy, epsilon=5.0, seed=1, mode="experiment")
    settings = settings_of(how, model.project)
    engine = WordEngine(replace(settings, keep_layout=keep_layout), model)
    keys = [(str(i),) for i in range(len(TEXTS))]
    done = engine.worker().draw(
        Batch([[text] for text in TEXTS], keys, part_epsilon=np.full(len(TEXTS), 30.0))
    )
    found = changes_of(done.encoded, TEXTS, done.texts, done.action, done.rows, engine.lexicon)
    assert [changes.source for changes in found] == TEXTS
    for changes in found:
        assert "".join(part.text for part in changes.source_parts()) == changes.source
        assert "".join(part.text for part in changes.output_parts()) == changes.output
        marked = [part.token for part in changes.output_parts() if part.fate is not None]
        assert marked == [token for token, fate in enumerate(changes.fates) if fate != Fate.DROPPED]
    fates = [fate for changes in found for fate in changes.fates]
    assert {fate for fate, action in zip(fates, done.action, strict=True) if action == KEPT} == {
        Fate.KEPT
    }
    assert {"random", "kept", "replaced"} <= set(fates)
