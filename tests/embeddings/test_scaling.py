"""Vectors by public rules: composed collocations and lengths, by hand, the same bytes wherever they
are made."""

import numpy as np
import pytest

from lexveil.core.embeddings.composition import composable, composed
from lexveil.core.embeddings.scaling import EXPONENT, frequency_factors, listed_factors, scaled
from lexveil.core.embeddings.word_space import WordSpace

ROWS = {"new": 0, "york": 1, "city": 2}
VECTORS = np.array([[1, 2], [3, -2], [2, 0.5]], dtype=np.float32)


def test_values_by_hand():
    """Mean of new and york: (1 + 3) / 2, (2 - 2) / 2; with city: 6 / 3, 0.5 / 3. One word is its
    own mean."""
    means = composed(["new_york_city", "york", "new_york", "york_new"], ROWS, VECTORS)
    assert means.dtype == np.float32
    assert means.tolist() == [[2, float(np.float32(0.5) / np.float32(3))], [3, -2], [2, 0], [2, 0]]


def test_words_are_added_from_left_to_right_in_single_precision():
    """2^24 + 1 + 1: from the left both ones are lost; from the right, or in double precision,
    neither is."""
    vectors = np.array([[2.0**24], [1], [1]], dtype=np.float32)
    assert composed(["new_york_city"], ROWS, vectors).tolist() == [
        [float(np.float32(2**24) / np.float32(3))]
    ]
    assert composed(["city_york_new"], ROWS, vectors).tolist() == [
        [float(np.float32(2**24 + 2) / np.float32(3))]
    ]


def test_what_has_no_vector():
    assert composable(["new_york", "new_jersey", "city"], ROWS) == ["new_york", "city"]
    with pytest.raises(KeyError, match="jersey"):
        composed(["new_york", "new_jersey"], ROWS, VECTORS)
    assert composed([], ROWS, VECTORS).shape == (0, 2)


TOKENS = ["the", "new_york", "york", "anne"]


def space():
    vectors = np.array([[3, 4], [0, 0], [0, 1e-30], [5, 12]], dtype=np.float32)
    return WordSpace(TOKENS, vectors, np.array([1023, 31, 15, 0]))


def test_lengths_by_hand():
    """A vector of length 0 stays."""
    assert scaled(space(), "none") is not None and scaled(given := space(), "none") is given
    unit = scaled(space(), "unit")
    assert (
        np.allclose(unit.vectors, [[0.6, 0.8], [0, 0], [0, 1], [5 / 13, 12 / 13]])
        and unit.vectors.dtype == np.float32
    )
    assert unit.tokens == TOKENS and unit.counts.tolist() == [1023, 31, 15, 0]
    by_frequency = np.linalg.norm(scaled(space(), "frequency").vectors, axis=1)
    factors = np.array([1, 0, (15.5 / 1023.5) ** EXPONENT, (0.5 / 1023.5) ** EXPONENT])
    assert by_frequency / by_frequency[0] == pytest.approx(factors, rel=1e-6)
    # so a model that was packaged with it can be a base
    twice = scaled(scaled(space(), "frequency"), "frequency")
    assert np.linalg.norm(twice.vectors, axis=1) == pytest.approx(by_frequency, rel=1e-6)
    assert frequency_factors(np.array([0, 0])).tolist() == [1, 1] and frequency_factors(
        np.array([])
    ).shape == (0,)


def test_the_mean_length_of_an_occurrence_stays():
    """The mean length stays, so that an epsilon has the same order of magnitude; by hand: 1,023 × 5
    + 15 × 1e-30.
    """
    counts = space().counts
    after = counts @ np.linalg.norm(scaled(space(), "frequency").vectors.astype(np.float64), axis=1)
    assert after == pytest.approx(1023 * 5, rel=1e-6)
    empty = WordSpace(TOKENS, space().vectors, np.zeros(4, dtype=np.int64))
    assert np.linalg.norm(scaled(empty, "frequency").vectors, axis=1) == pytest.approx([1, 0, 1, 1])


def test_a_collocation_has_the_smallest_factor_of_its_words():
    """Otherwise a listed name would be unprotected inside a collocation. A collocation's own entry
    takes precedence.
    """
    assert listed_factors(TOKENS, {"york": 0.0, "new": 0.5, "anne": 2.0}).tolist() == [1, 0, 0, 2]
    assert listed_factors(TOKENS, {"york": 0.0, "new_york": 0.25}).tolist() == [1, 0.25, 0, 1]
    assert listed_factors(TOKENS, {}).tolist() == [1, 1, 1, 1]
    assert np.linalg.norm(scaled(space(), "none", {"anne": 0.5}).vectors, axis=1)[
        3
    ] == pytest.approx(6.5)
