"""Bounds of distances: never beyond the distance, and tight enough to be of use."""

import numpy as np
import pytest

from lexveil.embeddings import sketch as module
from lexveil.embeddings.exact_search import distance_rows
from lexveil.embeddings.kernels.sketch import sketch_bounds
from lexveil.embeddings.sketch import Sketch


def words(n: int, p: int, scale: float = 1.0) -> np.ndarray:
    """Words of very different norms, a few directions of most variance, a zero and two equal words."""
    rng = np.random.default_rng(p)
    some = rng.standard_normal((n, p)) * np.geomspace(3, 0.1, p) * np.exp(rng.normal(0, 1, (n, 1))) * scale
    some[7] = 0
    some[5] = some[3]
    return some.astype(np.float32)


def make(vectors: np.ndarray) -> Sketch:
    return Sketch(vectors, norms_of(vectors))


def norms_of(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))


@pytest.mark.parametrize("p", [1, 2, 31, 32, 100])
@pytest.mark.parametrize("scale", [1e-25, 1e-6, 1.0, 1e6, 1e25])
def test_a_sketch_bounds_every_distance(p: int, scale: float) -> None:
    vectors = words(120, p, scale)
    norms, sketch, distance = norms_of(vectors), make(vectors), distance_rows(vectors, np.arange(120))
    place = sketch.place
    bounds = np.array(
        [[sketch_bounds(sketch.rows, sketch.step, place[i], place[j]) for j in range(120)] for i in range(120)]
    )
    assert (bounds[..., 0] <= distance).all() and (distance <= bounds[..., 1]).all()
    # No looser than what the norms alone say, and the distance itself where no direction is left out.
    assert (bounds[..., 0] >= np.abs(norms[:, None] - norms) - 1e-3 * norms.max()).all()
    if p <= 31:
        assert np.allclose(bounds[..., 0], bounds[..., 1], rtol=0, atol=1e-3 * norms.max())


@pytest.mark.parametrize("narrow", [0.0, 1 / 12, 2.0])
@pytest.mark.parametrize("n", [1, 5, 40, 3000])
def test_clusters_hold_every_word_once_and_bound_its_distances(
    monkeypatch: pytest.MonkeyPatch, n: int, narrow: float
) -> None:
    """Measured word by word, by centre and radius, and some of each."""
    monkeypatch.setattr(module, "NARROW", narrow)
    vectors = words(max(n, 8), 40)[:n]
    sketch = make(vectors)
    assert sorted(sketch.order) == list(range(n)) and (sketch.order[sketch.place] == np.arange(n)).all()
    assert sketch.ends[0] == 0 and sketch.ends[-1] == n and (np.diff(sketch.ends) > 0).all()
    some = np.unique([0, min(7, n - 1), n // 2, n - 1])
    sketch.measure(np.concatenate([some, some]))
    assert np.flatnonzero(sketch.measured).tolist() == some.tolist()
    table = distance_rows(vectors, some)
    table[np.arange(len(some)), some] = np.inf
    for cluster in range(len(sketch.ends) - 1):
        members = sketch.order[sketch.ends[cluster] : sketch.ends[cluster + 1]]
        assert (sketch.nearest[some, cluster] <= table[:, members].min(axis=1)).all()


def test_bounds_of_clusters_are_close() -> None:
    """Over all words and clusters of many words: most of the nearest distance is there."""
    vectors = words(3000, 40)
    sketch = make(vectors)
    some = np.arange(0, 3000, 30)
    sketch.measure(some)
    table = distance_rows(vectors, some)
    table[np.arange(len(some)), some] = np.inf
    least = np.minimum.reduceat(table[:, sketch.order], sketch.ends[:-1], axis=1)
    alone = np.isinf(least)
    assert np.median(sketch.nearest[some][~alone] / least[~alone]) > 0.9


def test_batches_change_nothing() -> None:
    vectors = words(500, 40)
    together, alone = make(vectors), make(vectors)
    together.measure(np.arange(100))
    for word in reversed(range(100)):
        alone.measure(np.array([word]))
    assert (together.nearest[:100] == alone.nearest[:100]).all()


def test_words_without_length() -> None:
    sketch = make(np.zeros((9, 3), dtype=np.float32))
    sketch.measure(np.arange(9))
    assert (sketch.nearest[:, : len(sketch.ends) - 1] == 0).all()
