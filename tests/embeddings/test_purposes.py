"""Axes of public scales, and scores that are found of more words."""

import numpy as np
import pytest

from lexveil.core.embeddings.purposes import REACH, Purpose, spread, with_axes
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.readers.shares import Told

SCORES = {"good": 1.0, "bad": -1.0, "fine_art": 0.5}


def space_of(tokens, vectors):
    return WordSpace(tokens, vectors.astype(np.float32), np.arange(len(tokens), 0, -1))


def test_the_distance_on_the_axis_is_that_of_the_formula():
    """Weight · reach · score · length² / the median length; a collocation has its words' mean
    unless its own."""
    tokens = ["good", "bad", "not_bad", "fine_art", "table"]
    made = with_axes(
        space_of(tokens, np.diag([4.0, 1, 2, 2, 2])),
        [Purpose("s", 2.0, SCORES, "", is_public=True)],
    )
    assert made.vectors.shape == (5, 6) and made.vectors.dtype == np.float32
    np.testing.assert_array_equal(made.vectors[:, :5], np.diag([4.0, 1, 2, 2, 2]))
    expected = np.array([1 * 16, -1 * 1, -0.5 * 4, 0.5 * 4, 0]) * 2 * REACH / 2
    np.testing.assert_allclose(made.vectors[:, 5], expected, atol=2**-12)
    assert with_axes(made, []) is made


def test_scores_spread_to_words_that_stand_near_and_known_ones_stay():
    rng = np.random.default_rng(1)
    side = np.repeat([1.0, -1.0, 0.0], 100)
    vectors = rng.normal(size=(300, 8)) * 0.2
    vectors[:, 0] += side
    tokens = [f"w{number}" for number in range(298)] + ["a_b", "!"]
    known = {token: float(score) for token, score in zip(tokens[::2], side[::2], strict=False)}
    found = spread(space_of(tokens, vectors), known)
    assert {token: found.get(token, 0.0) for token in known} == known
    others = np.array([found.get(token, 0.0) for token in tokens[1:200:2]])
    assert (np.sign(others) == side[1:200:2]).all()
    assert not {"a_b", "!"} & found.keys() and 0.0 not in found.values()


def test_what_is_told_against_counting_pairs():
    rng = np.random.default_rng(2)
    scores = np.array([1.0, 0.5, -1.0, -0.5, 0.0, 0.0])
    words, outputs, guesses = rng.integers(0, 6, (3, 200))
    weights = rng.random(200)
    on = np.flatnonzero(scores[words])

    def auc(found):
        total = right = 0.0
        for one in on:
            for other in on:
                if scores[words[one]] > 0 > scores[words[other]]:
                    first = scores[found[one]]
                    second = scores[found[other]]
                    total += weights[one] * weights[other]
                    right += (
                        weights[one] * weights[other] * ((first > second) + (first == second) / 2)
                    )
        return right / total

    def side(found):
        same = np.sign(scores[found[on]]) == np.sign(scores[words[on]])
        return float(weights[on][same].sum() / weights[on].sum())

    found = Told.of(scores, words, weights, outputs, [guesses])
    assert found.share == pytest.approx(weights[on].sum() / weights.sum())
    assert found.auc == pytest.approx(max(auc(outputs), auc(guesses)))
    assert found.side == pytest.approx(max(side(outputs), side(guesses)))
    assert found.named == pytest.approx(
        weights[on][guesses[on] == words[on]].sum() / weights[on].sum()
    )
