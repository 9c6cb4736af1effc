"""Greedy orders: every word once, each step to the nearest unused word, the same whatever the
blocks."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lexveil.core.embeddings import knn_graph, word_orders
from lexveil.core.embeddings.extent import largest_distance, smallest_distance
from lexveil.core.embeddings.knn_graph import Scanner, exact_graph, nearest_others
from lexveil.core.embeddings.word_orders import greedy_orders, mean_step, share_near


def naive(vectors, start):
    """The definition, word by word, in float64; equally near words: the lowest row."""
    wide = vectors.astype(np.float64)
    order = [start]
    left = [row for row in range(len(vectors)) if row != start]
    while left:
        squared = ((wide[left] - wide[order[-1]]) ** 2).sum(axis=1)
        order.append(left.pop(int(np.argmin(squared))))
    return order


def cloud(n, p, seed):
    """Words of very different lengths, as embeddings have them."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, p)) * rng.gamma(1, 2, (n, 1)) + 3).astype(np.float32)


# Small whole numbers: sums are exact, so that ties are ties, and there are many of them.
GRIDS = st.integers(1, 60).flatmap(
    lambda n: arrays(np.float32, (n, 2), elements=st.integers(0, 3).map(float))
)


@given(vectors=GRIDS, data=st.data(), neighbors=st.sampled_from([1, 3, 50]))
def test_an_order_is_the_naive_one(vectors, data, neighbors):
    start = data.draw(st.integers(0, len(vectors) - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_orders, "NEIGHBORS", neighbors)
        assert greedy_orders(vectors, [start])[0].tolist() == naive(vectors, start)


@pytest.mark.parametrize("blocks", [(256, 4096), (7, 64)])
@pytest.mark.parametrize("neighbors", [2, 50])
def test_a_longer_order_is_the_naive_one(monkeypatch, blocks, neighbors):
    monkeypatch.setattr(knn_graph, "QUERY_BLOCK", blocks[0])
    monkeypatch.setattr(knn_graph, "WORD_BLOCK", blocks[1])
    monkeypatch.setattr(word_orders, "NEIGHBORS", neighbors)
    vectors = cloud(500, 12, seed=1)
    orders = greedy_orders(vectors, [5, 499])
    assert orders.dtype == np.int32
    assert [order.tolist() for order in orders] == [naive(vectors, 5), naive(vectors, 499)]


def test_words_far_from_the_origin_are_told_apart():
    """float32 products cannot rank these words at all; what they cannot prove is measured."""
    vectors = (np.random.default_rng(2).standard_normal((300, 8)) * 0.01 + 1000).astype(np.float32)
    assert (exact_graph(Scanner(vectors), 20, np.arange(300)).proven == 0).all()
    placed = []
    assert greedy_orders(vectors, [0], on_step=placed.append)[0].tolist() == naive(vectors, 0)
    assert sum(placed) == 299


def test_quality_by_hand(monkeypatch):
    vectors = np.array([[0.0], [1.0], [5.0], [7.0]], dtype=np.float32)
    monkeypatch.setattr(word_orders, "NEAR", 1)
    orders = np.array([[0, 1, 2, 3], [1, 2, 3, 0]], dtype=np.int32)
    assert mean_step(vectors, orders[0]) == pytest.approx((1 + 4 + 2) / 3)
    # In the second list, 0 and its nearest word 1 stand three apart, so both miss.
    assert share_near(vectors, orders, np.arange(4)) == [1.0, 0.5]


# on the unit sphere lengths rule nothing out, elsewhere nearly everything
CLOUD = cloud(700, 10, seed=8)


@example(CLOUD)
@example(CLOUD / np.linalg.norm(CLOUD, axis=1, keepdims=True))
@given(GRIDS.filter(lambda vectors: len(vectors) > 1))
def test_nearest_words_and_extreme_distances(vectors):
    wide = vectors.astype(np.float64)
    table = np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    assert largest_distance(vectors) == pytest.approx(table.max(), rel=1e-12)
    np.fill_diagonal(table, np.inf)
    nearest = nearest_others(vectors, np.arange(len(vectors)), 1)[0][:, 0]
    assert nearest.tolist() == table.argmin(axis=1).tolist()
    for known in (None, nearest):
        assert smallest_distance(vectors, known) == pytest.approx(table.min(), rel=1e-12)
