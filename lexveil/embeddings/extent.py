"""The smallest and the largest distance of two words of an embedding, exactly: Δ_min and Δ_max of truncated Gumbel."""

from __future__ import annotations

import numpy as np

from lexveil.embeddings.exact_search import pair_distances
from lexveil.types import Floats, Vectors

BLOCK = 512
PAIR_BLOCK = 2048
PROBES = 4  # words from which the first guess at the largest distance is measured


def smallest_distance(vectors: Vectors) -> float:
    """Δ_min over all pairs of different words, exactly; 0 if two words have the same vector. V must be 2 or more.

    Products in float32 find the pairs that can be the nearest in spite of rounding; those are measured in float64.
    """
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    n_words, dimensions = vectors.shape
    squares = np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64)
    # Of |a|² + |b|² - 2<a,b>: (p + 8) rounding steps of |a|² + |b|², and the sums themselves.
    shrunk = (squares * (1 - 2 * (dimensions + 16) * 2.0**-24)).astype(np.float32)
    best = np.inf
    for first in range(0, n_words, PAIR_BLOCK):
        ones = vectors[first : first + PAIR_BLOCK]
        for second in range(first, n_words, PAIR_BLOCK):
            others = vectors[second : second + PAIR_BLOCK]
            least = ones @ others.T
            least *= -2
            least += shrunk[first : first + PAIR_BLOCK, None]
            least += shrunk[second : second + PAIR_BLOCK]
            if first == second:
                least[np.tril_indices(len(ones))] = np.inf
            # The likeliest pair first: what it measures rules out most others.
            pairs = np.array([np.unravel_index(least.argmin(), least.shape)])
            while len(pairs) and least[tuple(pairs[0])] <= best * best * (1 + 1e-12):
                best = min(best, float(pair_distances(vectors, pairs[:, 0] + first, pairs[:, 1] + second).min()))
                if best == 0:
                    return 0.0
                least[pairs[:, 0], pairs[:, 1]] = np.inf
                pairs = np.argwhere(least <= best * best * (1 + 1e-12))
    return best


def largest_distance(vectors: Vectors) -> float:
    """Δ_max over all pairs, to the rounding of float64. V must be 1 or more.

    Two words are at most as far apart as their distances from the middle together, so pairs of words near the middle
    are never measured.
    """
    middle = vectors.mean(axis=0, dtype=np.float64)
    radius = np.concatenate([_lengths(vectors[at : at + BLOCK] - middle) for at in range(0, len(vectors), BLOCK)])
    # Farthest first; a guess from below rules out most words, and it is one of the distances that are compared.
    order = np.argsort(-radius, kind="stable")
    radius = radius[order]
    best = 0.0
    farthest = order[0]
    for _ in range(PROBES):
        away = np.concatenate([_from(vectors, int(farthest), at) for at in range(0, len(vectors), BLOCK)])
        farthest = away.argmax()
        best = max(best, float(away[farthest]))
    for start in range(0, len(order), BLOCK):
        if radius[start] * 2 < best:
            break
        # Later words only: earlier ones have met these already.
        end = int(np.searchsorted(-radius, radius[start] - best, side="right"))
        block = vectors[order[start : start + BLOCK]].astype(np.float64) - middle
        for first in range(start, end, BLOCK):
            others = vectors[order[first : min(first + BLOCK, end)]].astype(np.float64) - middle
            # |a - b|² by a product, which loses some digits, finds the pair; the pair itself is measured.
            squared = -2 * (block @ others.T)
            squared += np.einsum("np,np->n", block, block)[:, None]
            squared += np.einsum("np,np->n", others, others)[None]
            a, b = np.unravel_index(squared.argmax(), squared.shape)
            if squared[a, b] > best * best * (1 - 1e-9):
                pair = vectors[order[[start + a, first + b]]].astype(np.float64)
                best = max(best, float(_lengths(pair[:1] - pair[1:])[0]))
    return best


def _from(vectors: Vectors, row: int, at: int) -> Floats:
    return _lengths(vectors[at : at + BLOCK].astype(np.float64) - vectors[row].astype(np.float64))


def _lengths(differences: Floats) -> Floats:
    lengths: Floats = np.sqrt((differences * differences).sum(axis=1))
    return lengths
