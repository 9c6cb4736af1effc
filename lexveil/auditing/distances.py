"""The audit's own distances, in float64 from vectors and word orders: nothing of the mechanisms is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lexveil.types import Floats, Ids

# (n,) and (m,) ids -> (n, m) distances in the metric of the claim.
Distances = Callable[[Ids, Ids], Floats]

ON_LISTS = ("diffractor_geometric", "diffractor_tem")


def euclidean(vectors: npt.NDArray[np.float32] | Floats) -> Distances:
    """Distances of rows, measured from their differences, so that near words keep their digits."""

    def distances(first: Ids, second: Ids) -> Floats:
        out = np.empty((len(first), len(second)))
        right = vectors[second].astype(np.float64)
        for i, row in enumerate(first.tolist()):
            difference = right - vectors[row].astype(np.float64)
            out[i] = np.sqrt(np.einsum("np,np->n", difference, difference))
        return out

    return distances


def spread(vectors: npt.NDArray[np.float32] | Floats, share: float) -> Floats:
    """λΣ + (1-λ)I (p, p), Σ the covariance of the rows scaled to trace p; the identity where they do not spread."""
    places = np.asarray(vectors, dtype=np.float64)
    p = places.shape[1]
    centred = places - places.mean(axis=0)
    covariance = centred.T @ centred
    trace = np.trace(covariance)
    scaled = covariance * (p / trace) if trace > 0 else np.eye(p)
    return np.asarray(share * scaled + (1 - share) * np.eye(p))


def mahalanobis(vectors: npt.NDArray[np.float32] | Floats, share: float) -> Distances:
    """sqrt((φ-φ')ᵀ(λΣ+(1-λ)I)^{-1}(φ-φ')) of rows, by solving with the triangular root of the matrix."""
    root = np.linalg.cholesky(spread(vectors, share))
    return euclidean(np.linalg.solve(root, np.asarray(vectors, dtype=np.float64).T).T)


def on_lists(orders: Sequence[Sequence[int]] | npt.NDArray[np.int32]) -> Distances:
    """The largest difference of two words' places over all lists; ``orders[l][i]`` is the word at place i."""
    places = np.array([np.argsort(np.asarray(order)) for order in orders])

    def distances(first: Ids, second: Ids) -> Floats:
        gaps = np.abs(places[:, first][:, :, None] - places[:, second][:, None, :])
        return np.asarray(gaps.max(axis=0), dtype=np.float64)

    return distances
