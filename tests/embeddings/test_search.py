"""Exact search: the answer of a float64 scan, whatever the blocks; and bounds of distances, never
beyond them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lexveil.core.embeddings import exact_search
from lexveil.core.embeddings.exact_search import ExactSearch, distance_rows
from lexveil.core.embeddings.kernels.search import measure_pairs
from lexveil.core.embeddings.kernels.sketch import sketch_bounds
from lexveil.core.embeddings.sketch import Sketch


def scan_k(vectors, queries, k):
    """The definition: distances in the widest floats there are; of equal ones the lowest row comes
    first."""
    wide = vectors.astype(np.longdouble)
    squares = np.array(
        [((wide - query) ** 2).sum(axis=1) for query in queries.astype(np.longdouble)]
    )
    ids = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return ids, np.sqrt(np.take_along_axis(squares, ids, axis=1)).astype(np.float64)


# Small whole numbers: all sums are exact, so ties are ties, and there are many; few words, and not
# in sixteens.
GRIDS = st.tuples(st.integers(1, 70), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.integers(-2, 2).map(float))
)


@given(
    vectors=GRIDS,
    data=st.data(),
    far=st.sampled_from([1, 1000]),
    k=st.sampled_from([1, 2, 7, 8, 9, 64, 100]),
    blocks=st.sampled_from([(512, 8192), (1, 16), (7, 40)]),
)
def test_the_k_nearest_with_ties_and_copies(vectors, data, far, k, blocks):
    queries = data.draw(
        arrays(np.float64, (3, vectors.shape[1]), elements=st.integers(-6, 6).map(lambda x: x / 2))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "QUERY_BLOCK", blocks[0])
        patch.setattr(exact_search, "WORD_BLOCK", blocks[1])
        ids, distances = ExactSearch(vectors).nearest_k(far * queries, k)
    expected = scan_k(vectors, far * queries, min(k, len(vectors)))
    assert ids.tolist() == expected[0].tolist()
    assert distances.tolist() == expected[1].tolist()


def far_queries(vectors, n, epsilon):
    """Words with MADLIB's noise, drawn here anew: radius Gamma(p, 1/ε), any direction."""
    rng = np.random.default_rng(6)
    p = vectors.shape[1]
    noise = rng.standard_normal((n, p))
    noise *= (rng.gamma(p, 1 / epsilon, n) / np.linalg.norm(noise, axis=1))[:, None]
    return vectors[rng.integers(len(vectors), size=n)] + noise


def near_ties(spread):
    """17 words in 300 dimensions, each with 20 others a few float32 steps beside it in every
    coordinate; shuffled."""
    rng = np.random.default_rng(7)
    words = np.repeat(rng.standard_normal((17, 300)).astype(np.float32), 21, axis=0)
    steps = rng.integers(-spread, spread + 1, size=words.shape)
    return rng.permutation((words.view(np.int32) + steps.astype(np.int32)).view(np.float32))


def wide_words(n):
    rng = np.random.default_rng(8)
    return (rng.standard_normal((n, 300)) * rng.gamma(1, 0.5, (n, 1))).astype(np.float32)


@pytest.mark.parametrize("k", [1, 8, 9])
def test_rounding_that_is_not_allowed_for_shows(monkeypatch, k):
    """Without its slack, the search loses words among near ties; the tests above would
    detect this.
    """
    vectors = near_ties(3)
    queries = far_queries(vectors, 40, 1.0)
    assert (ExactSearch(vectors).nearest_k(queries, k)[0] == scan_k(vectors, queries, k)[0]).all()
    monkeypatch.setattr(ExactSearch, "_slack", lambda self, queries: np.zeros(len(queries)))
    assert (ExactSearch(vectors).nearest_k(queries, k)[0] != scan_k(vectors, queries, k)[0]).any()


@pytest.mark.parametrize("screens", [False, True])
@pytest.mark.parametrize("length", [1e8, 1e10, 1e12, 1e14, 9e14, 1e16])
def test_queries_far_away_have_the_answer_of_a_float64_scan(monkeypatch, length, screens):
    """Float64 distinguishes these words only by its rounding, so every word that could be nearest
    is measured.
    """
    monkeypatch.setattr(exact_search, "SCREEN_QUERIES", 0)
    monkeypatch.setattr(exact_search, "SCREEN_WORK", 0)
    vectors = wide_words(2003)
    queries = far_queries(vectors, 12, 1.0)
    queries *= (length / np.linalg.norm(queries, axis=1))[:, None]
    ids, distances = ExactSearch(vectors, screens=screens).nearest_k(queries, 8)
    every = np.arange(len(vectors))
    for query in range(len(queries)):
        squares = measure_pairs(vectors, queries, every, np.full(len(every), query))
        nearest = np.argsort(squares, kind="stable")[:8]
        assert ids[query].tolist() == nearest.tolist()
        assert distances[query].tolist() == np.sqrt(squares[nearest]).tolist()


def words(n, p, scale=1.0):
    """Words of very different norms, a few directions of most variance, a zero and two equal
    words."""
    rng = np.random.default_rng(p)
    some = (
        rng.standard_normal((n, p))
        * np.geomspace(3, 0.1, p)
        * np.exp(rng.normal(0, 1, (n, 1)))
        * scale
    )
    some[7] = 0
    some[5] = some[3]
    return some.astype(np.float32)


@pytest.mark.parametrize("p", [1, 2, 31, 32, 100])
@pytest.mark.parametrize("scale", [1e-25, 1e-6, 1.0, 1e6, 1e25])
def test_a_sketch_bounds_every_distance(p, scale):
    vectors = words(120, p, scale)
    norms = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    sketch = Sketch(vectors, norms)
    distance = distance_rows(vectors, np.arange(120))
    bounds = np.array(
        [[sketch_bounds(sketch.rows, sketch.step, i, j) for j in range(120)] for i in range(120)]
    )
    assert (bounds[..., 0] <= distance).all() and (distance <= bounds[..., 1]).all()
    # No looser than what the norms alone say, and the distance itself where no direction is left
    # out.
    assert (bounds[..., 0] >= np.abs(norms[:, None] - norms) - 1e-3 * norms.max()).all()
    if p <= 31:
        assert np.allclose(bounds[..., 0], bounds[..., 1], rtol=0, atol=1e-3 * norms.max())
