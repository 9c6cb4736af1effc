"""Exact smallest and largest distance between two words of an embedding, which the truncated
Gumbel mechanism uses as Δ_min and Δ_max.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Floats, Vectors
from lexveil.core.embeddings.exact_search import pair_distances
from lexveil.core.embeddings.neighborhoods import Near

WORDS_AT_A_TIME = 512
PROBES = 4  # words whose distances give the first estimate of the largest distance


def smallest_distance(vectors: Vectors, nearest: Near | None = None) -> float:
    """Return the exact smallest distance Δ_min over all pairs of different words; 0 if two words
    have the same vector. V must be 2 or more.

    Args:
        nearest: (V,) the nearest other word of each word; None to compute it.
    """
    from lexveil.core.embeddings.knn_graph import nearest_others

    every = np.arange(len(vectors))
    if nearest is None:
        nearest = nearest_others(vectors, every, 1)[0][:, 0]
    return float(pair_distances(vectors, every, nearest.astype(np.int64)).min())


def largest_distance(vectors: Vectors) -> float:
    """Return the largest distance Δ_max over all pairs of words, up to the rounding of float64. V
    must be 1 or more.

    The distance of two words is at most the sum of their distances from the mean vector, so the
    distances of pairs near the mean need not be computed.
    """
    middle = vectors.mean(axis=0, dtype=np.float64)
    radius = np.concatenate(
        [
            _lengths(vectors[at : at + WORDS_AT_A_TIME] - middle)
            for at in range(0, len(vectors), WORDS_AT_A_TIME)
        ]
    )
    # Farthest first. A lower bound, which is the distance of a real pair, rules out most words.
    order = np.argsort(-radius, kind="stable")
    radius = radius[order]
    best = 0.0
    farthest = order[0]
    for _ in range(PROBES):
        probe = vectors[int(farthest)].astype(np.float64)
        away = np.concatenate(
            [
                _lengths(vectors[at : at + WORDS_AT_A_TIME] - probe)
                for at in range(0, len(vectors), WORDS_AT_A_TIME)
            ]
        )
        farthest = away.argmax()
        best = max(best, float(away[farthest]))
    for start in range(0, len(order), WORDS_AT_A_TIME):
        if radius[start] * 2 < best:
            break
        # Compare with later words only: pairs with earlier words have been compared already.
        end = int(np.searchsorted(-radius, radius[start] - best, side="right"))
        block = vectors[order[start : start + WORDS_AT_A_TIME]].astype(np.float64) - middle
        for first in range(start, end, WORDS_AT_A_TIME):
            others = (
                vectors[order[first : min(first + WORDS_AT_A_TIME, end)]].astype(np.float64)
                - middle
            )
            # |a - b|² by a product, which loses some digits, finds the pair; the distance of the
            # pair is then computed directly.
            squared = -2 * (block @ others.T)
            squared += np.einsum("np,np->n", block, block)[:, None]
            squared += np.einsum("np,np->n", others, others)[None]
            a, b = np.unravel_index(squared.argmax(), squared.shape)
            if squared[a, b] > best * best * (1 - 1e-9):
                pair = vectors[order[[start + a, first + b]]].astype(np.float64)
                best = max(best, float(_lengths(pair[:1] - pair[1:])[0]))
    return best


def _lengths(differences: Floats) -> Floats:
    lengths: Floats = np.sqrt((differences * differences).sum(axis=1))
    return lengths
