"""Weighted means by hand, cosines and what is not compared; MiniLM through a stand-in, for it is not installed."""

from __future__ import annotations

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.evaluation import encoder as module
from lexveil.evaluation.encoder import TfidfMean, similarity

WORDS = ["red", "green", "blue"]
VECTORS = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
CLEAN = ["Red green.", "red red", "red blue", "zebra"]
# n = 4; red is in 3 texts, green and blue in 1 each.
IDF = np.array([np.log(5 / 4) + 1, np.log(5 / 2) + 1, np.log(5 / 2) + 1])


def test_weights_and_means_by_hand() -> None:
    made = TfidfMean.fit(WORDS, VECTORS, CLEAN)
    assert made.idf == pytest.approx(IDF)
    red, green, _ = IDF
    encoded = made.encode(["red GREEN, red! zebra", "blue", "zebra.", ""])
    assert encoded.dtype == np.float32
    assert encoded[0] == pytest.approx([2 * red / (2 * red + green), green / (2 * red + green)])
    assert encoded[1:].tolist() == [[-1, 0], [0, 0], [0, 0]]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(np.random.default_rng(i).choice([*WORDS, "zebra"], i % 5)) for i in range(23)]
    whole, private = TfidfMean.fit(WORDS, VECTORS, texts), texts[::-1]
    once = similarity(whole, texts, private)
    monkeypatch.setattr(module, "BLOCK", 4)
    parts = TfidfMean.fit(WORDS, VECTORS, texts)
    assert np.array_equal(whole.idf, parts.idf)
    again = similarity(parts, texts, private)
    assert np.array_equal(once.cosines, again.cosines, equal_nan=True)
    assert (once.n_original_unknown, once.n_private_unknown) == (again.n_original_unknown, again.n_private_unknown)


def test_cosines_by_hand() -> None:
    """Same, orthogonal, opposite; unknown before, after, and both."""
    made = TfidfMean(WORDS, VECTORS, np.ones(3))
    original = ["red", "red", "red", "zebra", "green", "zebra"]
    private = ["red red", "green", "blue", "red", "okapi", ""]
    got = similarity(made, original, private)
    assert got.cosines[:3] == pytest.approx([1, 0, -1]) and np.isnan(got.cosines[3:]).all()
    assert (got.n_original_unknown, got.n_private_unknown, got.n_compared) == (2, 2, 3)
    assert (got.mean, got.sd) == (pytest.approx(0), pytest.approx(1))
    nothing = similarity(made, ["zebra"], ["zebra"])
    assert np.isnan(nothing.mean) and np.isnan(nothing.sd) and nothing.n_compared == 0


def test_rare_words_count_more() -> None:
    """Losing the rare word costs more than losing the frequent one; without idf both cost the same."""
    vectors = np.eye(2, dtype=np.float32)
    texts = ["red"] * 9 + ["red green"]
    for made, differ in (
        (TfidfMean.fit(WORDS[:2], vectors, texts), True),
        (TfidfMean(WORDS[:2], vectors, np.ones(2)), False),
    ):
        keeps_frequent, keeps_rare = similarity(made, ["red green"] * 2, ["red", "green"]).cosines
        assert (keeps_rare > keeps_frequent + 0.1) == differ


def test_more_changed_words_less_similar() -> None:
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(200)]
    made = TfidfMean(words, rng.standard_normal((200, 20)).astype(np.float32), np.ones(200))
    texts = [rng.choice(words, 30) for _ in range(50)]
    means = []
    for share in (0.0, 0.3, 0.9):
        private = [np.where(rng.random(30) < share, rng.choice(words, 30), text) for text in texts]
        means.append(similarity(made, [" ".join(t) for t in texts], [" ".join(t) for t in private]).mean)
    assert means[0] == pytest.approx(1) and means[0] > means[1] + 0.1 > means[2] + 0.2


def test_counts_that_do_not_match_are_refused() -> None:
    made = TfidfMean(WORDS, VECTORS, np.ones(3))
    with pytest.raises(ParameterError, match="2 original and 1 privatized"):
        similarity(made, ["red", "red"], ["red"])
    with pytest.raises(ParameterError, match="2 words, 3 vectors"):
        TfidfMean.fit(WORDS[:2], VECTORS, CLEAN)
