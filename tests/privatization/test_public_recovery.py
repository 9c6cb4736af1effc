"""What a reader is expected to get back of a model's words follows from public things alone."""

from pathlib import Path

import numpy as np
import pytest

from lexveil.accounting.budgets import Policy
from lexveil.artifacts.model import Model
from lexveil.recovery import public_words as public_recovery
from lexveil.recovery.bands import BANDS
from lexveil.recovery.public_words import PublicWords

PERTURB, KEEP = Policy("perturb", "keep", "sample"), Policy("keep", "keep", "sample")


def test_words_have_the_public_frequencies(built: Path) -> None:
    model = Model.load(built)
    space, words = model.embedding("S1"), PublicWords.of(model, "tem", "S1", PERTURB)
    rows = words.prepared.vocabulary.rows
    assert "," not in {space.tokens[row] for row in rows.tolist()}
    assert words.prior.sum() == pytest.approx(1) and words.prior.min() > 0
    assert np.all(np.diff(words.prior[np.argsort(space.counts[rows])]) >= 0)
    assert BANDS[words.bands[words.prepared.vocabulary.number[space.tokens.index("the")]]] == "function"


def test_a_word_that_is_kept_is_never_meant_by_a_perturbed_one(built: Path) -> None:
    words = PublicWords.of(Model.load(built), "tem", "S1", KEEP)
    function = words.bands == BANDS.index("function")
    assert words.prior[function].sum() == 0 and words.prior.sum() == pytest.approx(1)
    sample = words.sample("calibration", 300)
    assert sample.mass["function"] == 0 and not function[sample.ids].any()
    epsilon = np.full(len(words.prior), 1.0)
    guesses = words.adversary((1.0, 1.0)).guess(np.arange(len(words.prior)), epsilon)
    assert not function[guesses].any()


def test_more_epsilon_gives_back_more_and_always_the_same_figures(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_recovery, "WORDS", 300)
    words = PublicWords.of(Model.load(built), "tem", "S1", PERTURB)
    little, much = words.expected(0.5), words.expected(500.0)
    assert little.overall(little.recovered) < 0.3
    assert much.overall(much.recovered) > 0.7
    assert words.expected(0.5) == little != words.expected(0.5, "others")
