"""Lengths of vectors by public rules: values by hand, and that the old guarantees hold in the new space."""

from __future__ import annotations

import numpy as np
import pytest

from lexveil.embeddings.scaling import EXPONENT, frequency_factors, listed_factors, scaled
from lexveil.embeddings.word_space import WordSpace
from lexveil.mechanisms.tem import Tem

TOKENS = ["the", "new_york", "york", "anne"]


def space() -> WordSpace:
    vectors = np.array([[3, 4], [0, 0], [0, 1e-30], [5, 12]], dtype=np.float32)
    return WordSpace(TOKENS, vectors, np.array([1023, 31, 15, 0]))


def test_lengths_by_hand() -> None:
    """A vector of length 0 stays."""
    assert scaled(space(), "none") is not None and scaled(given := space(), "none") is given
    unit = scaled(space(), "unit")
    assert (
        np.allclose(unit.vectors, [[0.6, 0.8], [0, 0], [0, 1], [5 / 13, 12 / 13]]) and unit.vectors.dtype == np.float32
    )
    assert unit.tokens == TOKENS and unit.counts.tolist() == [1023, 31, 15, 0]
    by_frequency = np.linalg.norm(scaled(space(), "frequency").vectors, axis=1)
    factors = np.array([1, 0, (15.5 / 1023.5) ** EXPONENT, (0.5 / 1023.5) ** EXPONENT])
    assert by_frequency / by_frequency[0] == pytest.approx(factors, rel=1e-6)
    twice = scaled(scaled(space(), "frequency"), "frequency")  # so a model that was packaged with it can be a base
    assert np.linalg.norm(twice.vectors, axis=1) == pytest.approx(by_frequency, rel=1e-6)
    assert frequency_factors(np.array([0, 0])).tolist() == [1, 1] and frequency_factors(np.array([])).shape == (0,)


def test_the_mean_length_of_an_occurrence_stays() -> None:
    """So that an epsilon is of the same order; by hand: 1,023 × 5 + 15 × 1e-30."""
    counts = space().counts
    after = counts @ np.linalg.norm(scaled(space(), "frequency").vectors.astype(np.float64), axis=1)
    assert after == pytest.approx(1023 * 5, rel=1e-6)
    empty = WordSpace(TOKENS, space().vectors, np.zeros(4, dtype=np.int64))
    assert np.linalg.norm(scaled(empty, "frequency").vectors, axis=1) == pytest.approx([1, 0, 1, 1])


def test_a_collocation_has_the_smallest_factor_of_its_words() -> None:
    """Or a listed name would stand unprotected in a longer one; its own entry comes first."""
    assert listed_factors(TOKENS, {"york": 0.0, "new": 0.5, "anne": 2.0}).tolist() == [1, 0, 0, 2]
    assert listed_factors(TOKENS, {"york": 0.0, "new_york": 0.25}).tolist() == [1, 0.25, 0, 1]
    assert listed_factors(TOKENS, {}).tolist() == [1, 1, 1, 1]
    assert np.linalg.norm(scaled(space(), "none", {"anne": 0.5}).vectors, axis=1)[3] == pytest.approx(6.5)


def test_words_of_factor_0_cannot_be_told_apart_and_all_others_keep_their_guarantee() -> None:
    """Exact, by the law of TEM: the same row for both; elsewhere at most ε times the distance in the new space."""
    rng = np.random.default_rng(3)
    tokens = [f"w{number}" for number in range(30)]
    drawn = WordSpace(tokens, rng.standard_normal((30, 4)).astype(np.float32), rng.integers(1, 10_000, 30))
    made = scaled(drawn, "frequency", {"w7": 0.0, "w20": 0.0})
    tem = Tem(made.vectors)
    for epsilon in (1.0, 20.0):
        law = tem.log_pmf(np.arange(30), np.full(30, epsilon))
        assert law[7] == pytest.approx(law[20], abs=1e-12)
        gap = np.linalg.norm(made.vectors[:, None] - made.vectors[None], axis=2)
        loss = np.abs(law[:, None] - law[None]).max(axis=2)
        assert (loss <= epsilon * gap + 1e-6).all()
        assert (loss > epsilon * 1e-3 * gap).any()  # it is no empty claim
