"""Composed vectors: values by hand, the same bytes wherever they are made."""

from __future__ import annotations

import numpy as np
import pytest

from lexveil.embeddings.composition import composable, composed

ROWS = {"new": 0, "york": 1, "city": 2}
VECTORS = np.array([[1, 2], [3, -2], [2, 0.5]], dtype=np.float32)


def test_values_by_hand() -> None:
    """Mean of new and york: (1 + 3) / 2, (2 - 2) / 2; with city: 6 / 3, 0.5 / 3. One word is its own mean."""
    means = composed(["new_york_city", "york", "new_york", "york_new"], ROWS, VECTORS)
    assert means.dtype == np.float32
    assert means.tolist() == [[2, float(np.float32(0.5) / np.float32(3))], [3, -2], [2, 0], [2, 0]]


def test_words_are_added_from_left_to_right_in_single_precision() -> None:
    """2^24 + 1 + 1: from the left both ones are lost; from the right, or in double precision, neither is."""
    vectors = np.array([[2.0**24], [1], [1]], dtype=np.float32)
    assert composed(["new_york_city"], ROWS, vectors).tolist() == [[float(np.float32(2**24) / np.float32(3))]]
    assert composed(["city_york_new"], ROWS, vectors).tolist() == [[float(np.float32(2**24 + 2) / np.float32(3))]]


def test_what_has_no_vector() -> None:
    assert composable(["new_york", "new_jersey", "city"], ROWS) == ["new_york", "city"]
    with pytest.raises(KeyError, match="jersey"):
        composed(["new_york", "new_jersey"], ROWS, VECTORS)
    assert composed([], ROWS, VECTORS).shape == (0, 2)
