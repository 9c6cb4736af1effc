"""pynndescent: in a file of its own, because it compiles for a minute in every process that uses
it."""

import numpy as np
import pytest

from lexveil.core.embeddings import word_orders
from lexveil.core.embeddings.knn_graph import Scanner
from lexveil.core.embeddings.word_orders import greedy_orders, mean_step
from tests.embeddings.test_lists import cloud

pytestmark = pytest.mark.nightly


def test_an_approximate_graph_gives_a_whole_order_twice_the_same(
    monkeypatch,
):
    """Every word once, repeatable, as good as the exact one to a few per cent; no jump to an
    arbitrary word."""
    monkeypatch.setattr(word_orders, "EXACT_BELOW", 600)
    monkeypatch.setattr(word_orders, "NEIGHBORS", 10)
    vectors = cloud(2000, 12, seed=3)
    first = greedy_orders(vectors, [7], "pynndescent", seed=4)
    assert np.sort(first[0]).tolist() == list(range(2000))
    assert np.array_equal(first, greedy_orders(vectors, [7], "pynndescent", seed=4))
    exact = mean_step(vectors, greedy_orders(vectors, [7])[0])
    assert abs(mean_step(vectors, first[0]) / exact - 1) < 0.05
    # This test can fail: going to the first unused word where all neighbours are used is far
    # longer.
    monkeypatch.setattr(
        Scanner, "nearest", lambda self, row, forbidden: int(np.flatnonzero(~forbidden)[0])
    )
    assert mean_step(vectors, greedy_orders(vectors, [7], "pynndescent", seed=4)[0]) / exact > 1.05
