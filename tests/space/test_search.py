"""Exact search: the answer of a float64 scan, whatever the blocks."""

import numpy as np
import pytest

from tasks.space import search
from tasks.space.search import ExactSearch, approximate_neighbors

RNG = np.random.default_rng(5)
VECTORS = (RNG.standard_normal((700, 20)) * RNG.gamma(1, 1, (700, 1))).astype(np.float32)
VECTORS[300] = VECTORS[3]  # equal words: the lowest row wins
VECTORS[400] = np.nextafter(VECTORS[4], np.float32(9))  # words that float32 cannot tell apart


def scan(queries: np.ndarray) -> np.ndarray:
    wide = VECTORS.astype(np.float64)
    return np.array([np.argmin(((wide - query) ** 2).sum(axis=1)) for query in queries])


@pytest.mark.parametrize(("queries_at_once", "words_at_once"), [(512, 8192), (1, 64), (7, 300)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_nearest_is_a_float64_scan(
    monkeypatch: pytest.MonkeyPatch, scale: float, queries_at_once: int, words_at_once: int
) -> None:
    monkeypatch.setattr(search, "QUERY_BLOCK", queries_at_once)
    monkeypatch.setattr(search, "WORD_BLOCK", words_at_once)
    queries = VECTORS[RNG.integers(700, size=400)] + scale * RNG.standard_normal((400, 20))
    queries[:4] = VECTORS[[3, 300, 4, 400]]
    assert (ExactSearch(VECTORS).nearest(queries) == scan(queries)).all()


def test_float32_alone_would_be_wrong() -> None:
    """The re-measuring matters: plain float32 scores pick another word for some of these queries."""
    queries = VECTORS[[4, 400]].astype(np.float64) * 1.0
    scores = queries.astype(np.float32) @ VECTORS.T - (VECTORS * VECTORS).sum(axis=1) / 2
    near = np.sort(scores, axis=1)[:, -2:]
    assert (near[:, 1] - near[:, 0] < 1e-3).all()
    assert ExactSearch(VECTORS).nearest(queries).tolist() == [4, 400]


def test_neighbors() -> None:
    ids, distances = ExactSearch(VECTORS).neighbors(5)
    wide = VECTORS.astype(np.float64)
    table = np.sqrt(((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    np.fill_diagonal(table, np.inf)
    assert np.allclose(distances, np.sort(table, axis=1)[:, :5], atol=1e-5)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert not (ids == np.arange(700)[:, None]).any()


def test_more_neighbors_than_words() -> None:
    assert ExactSearch(VECTORS[:3]).neighbors(10)[0].shape == (3, 2)
    assert ExactSearch(VECTORS[:1]).neighbors(10)[0].shape == (1, 0)


@pytest.mark.slow
def test_pynndescent_finds_most_neighbors_among_words() -> None:
    """Recall is above 0.95 and the table is well formed."""
    exact, _ = ExactSearch(VECTORS).neighbors(5)
    ids, distances = approximate_neighbors(VECTORS, 5, seed=1)
    assert ids.shape == distances.shape == (700, 5)
    assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, ids, strict=True)]) > 0.95
