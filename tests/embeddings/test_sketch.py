"""Bounds of distances: never beyond the distance, and tight enough to be of use."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("p", [1, 2, 31, 32, 100])
@pytest.mark.parametrize("scale", [1e-25, 1e-6, 1.0, 1e6, 1e25])
def test_a_sketch_bounds_every_distance(p: int, scale: float) -> None:
    vectors = words(120, p, scale)
    norms = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    sketch, distance = Sketch(vectors, norms), distance_rows(vectors, np.arange(120))
    bounds = np.array([[sketch_bounds(sketch.rows, sketch.step, i, j) for j in range(120)] for i in range(120)])
    assert (bounds[..., 0] <= distance).all() and (distance <= bounds[..., 1]).all()
    # No looser than what the norms alone say, and the distance itself where no direction is left out.
    assert (bounds[..., 0] >= np.abs(norms[:, None] - norms) - 1e-3 * norms.max()).all()
    if p <= 31:
        assert np.allclose(bounds[..., 0], bounds[..., 1], rtol=0, atol=1e-3 * norms.max())
