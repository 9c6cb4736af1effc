"""The nearest other words of every word, exactly: float32 matrix products find candidates, float64 ranks them.

Every list is cut where float32 rounding could have hidden a nearer word, so what is left of it is proven: its entries
are the nearest words of a float64 scan, in order, equally near ones by row. What a list does not hold is found by
``Scanner``. Results therefore do not depend on block sizes, threads or the processor's matrix kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from lexveil.types import Floats, Vectors

Neighbors = npt.NDArray[np.int32]

QUERY_BLOCK = 256
WORD_BLOCK = 2048
GROUP = 16  # words whose scores are compared together


@dataclass(frozen=True, slots=True)
class Graph:
    """The nearest other words of n words out of V.

    Attributes:
        ids: (n, k) int32 rows, nearest first; -1 where there is none.
        proven: (n,) int32; the first ``proven`` entries of a row are the nearest words, in order.
        distances: (n, k) float64, squares added in the order of the dimensions; None of an approximate graph.
    """

    ids: Neighbors
    proven: Neighbors
    distances: Floats | None = None


class Scanner:
    """A fixed set of V vectors, and the nearest of those that are still allowed, for one query at a time."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        squares = np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64)
        self.half_norms = (squares / 2).astype(np.float32)
        self.norms = np.sqrt(squares)
        self._longest = float(self.norms.max(initial=0.0))
        # A float32 score <q, u> - |u|²/2 is wrong by at most this times |q| |u| + |u|²/2: a rounding step for each of p
        # products and sums, and some for what else is done to it.
        self.rounding = (self.vectors.shape[1] + 16) * 2.0**-24

    def slack(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Twice the largest error of a float32 score <q, u> - |u|²/2: (p + 8) rounding steps of |q| |u| + |u|²."""
        size = self.norms[rows] * self._longest + self._longest**2
        slack: Floats = 2 * (self.vectors.shape[1] + 8) * 2.0**-24 * size
        return slack

    def nearest(self, row: int, forbidden: npt.NDArray[np.bool_]) -> int:
        """The word nearest to word ``row`` among those not forbidden, of equally near ones the lowest row.

        Args:
            row: the query.
            forbidden: (V,); must hold for ``row`` and not for all words.
        """
        scores = self.vectors @ self.vectors[row]
        scores -= self.half_norms
        scores[forbidden] = -np.inf
        close = np.flatnonzero(scores >= scores.max() - self.slack(np.array([row]))[0])
        return int(close[np.argmin(squared_distances(self.vectors, row, close))])


def exact_graph(scanner: Scanner, k: int, rows: npt.NDArray[np.int64] | None = None) -> Graph:
    """The k nearest other words of each of ``rows`` (of all V words if None); k is cut to V - 1."""
    vectors, n_words = scanner.vectors, len(scanner.vectors)
    queries = np.arange(n_words) if rows is None else rows
    k = min(k, n_words - 1)
    ids, proven = np.empty((len(queries), k), dtype=np.int32), np.zeros(len(queries), dtype=np.int32)
    squares = np.empty((len(queries), k))
    if k <= 0:
        return Graph(ids, proven, squares)
    # Words are kept by the most that their scores can be in spite of rounding, which is little for short ones.
    relative = scanner.rounding
    base = ((1 - relative) * scanner.norms**2 / 2).astype(np.float32)
    error = (relative * scanner.norms).astype(np.float32)
    buffer = np.empty((QUERY_BLOCK, min(WORD_BLOCK, n_words)), dtype=np.float32)
    for start in range(0, len(queries), QUERY_BLOCK):
        block = queries[start : start + QUERY_BLOCK]
        chosen = vectors[block]
        lengths = scanner.norms[block].astype(np.float32)
        top = np.full((len(block), k), -np.inf, dtype=np.float32)
        found = np.full((len(block), k), -1, dtype=np.int32)
        for first in range(0, n_words, WORD_BLOCK):
            words = slice(first, first + WORD_BLOCK)
            scores = buffer[: len(block), : len(vectors[words])]
            np.matmul(chosen, vectors[words].T, out=scores)
            _keep_best(scores, base[words], error[words], lengths, first, block, top, found)
        cut = np.full(len(block), np.inf)  # of squared distance: all words that were not kept are at least as far
        if k < n_words - 1:
            cut = (scanner.norms[block] ** 2 - 2 * top[:, -1].astype(np.float64)) * (1 - 1e-9)
        part = slice(start, start + len(block))
        _rank(vectors, block, found, cut, ids[part], squares[part], proven[part])
    return Graph(ids, proven, np.sqrt(squares, out=squares))


def nearest_other(scanner: Scanner, rows: npt.NDArray[np.int64] | None = None) -> Neighbors:
    """The nearest other word of each of ``rows`` (of all words if None), (n,) int32; V must be 2 or more.

    Of equally near ones it is the lowest row.
    """
    queries = np.arange(len(scanner.vectors)) if rows is None else rows
    graph = exact_graph(scanner, 4, queries)
    nearest = graph.ids[:, 0].copy()
    forbidden = np.zeros(len(scanner.vectors), dtype=np.bool_)
    for at in np.flatnonzero(graph.proven == 0):
        forbidden[queries[at]] = True
        nearest[at] = scanner.nearest(int(queries[at]), forbidden)
        forbidden[queries[at]] = False
    return nearest


@numba.njit(cache=True)
def _squared(vectors: Vectors, a: int, b: int) -> float:
    total = 0.0
    for at in range(vectors.shape[1]):
        difference = np.float64(vectors[a, at]) - np.float64(vectors[b, at])
        total += difference * difference
    return total


@numba.njit(cache=True)
def squared_distances(vectors: Vectors, row: int, others: npt.NDArray[np.int64]) -> Floats:
    """Squared distances of one word to others, float64, summed in the order of the dimensions."""
    out = np.empty(len(others))
    _measure(vectors, row, others, out)
    return out


@numba.njit(cache=True)
def _measure(vectors: Vectors, row: int, others: npt.NDArray[np.int64] | Neighbors, out: Floats) -> None:
    """The same into ``out``, four words at a time, whose sums do not wait for each other."""
    whole = len(others) // 4 * 4
    for start in range(0, whole, 4):
        a, b, c, d = others[start], others[start + 1], others[start + 2], others[start + 3]
        first = second = third = fourth = 0.0
        for at in range(vectors.shape[1]):
            value = np.float64(vectors[row, at])
            to_a, to_b = value - np.float64(vectors[a, at]), value - np.float64(vectors[b, at])
            to_c, to_d = value - np.float64(vectors[c, at]), value - np.float64(vectors[d, at])
            first += to_a * to_a
            second += to_b * to_b
            third += to_c * to_c
            fourth += to_d * to_d
        out[start], out[start + 1], out[start + 2], out[start + 3] = first, second, third, fourth
    for at in range(whole, len(others)):
        out[at] = _squared(vectors, row, others[at])


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
def _keep_best(
    products: Vectors,
    base: Vectors,
    error: Vectors,
    lengths: Vectors,
    first: int,
    queries: npt.NDArray[np.int64],
    top: Vectors,
    found: Neighbors,
) -> None:
    """Merge one block of products into each query's k best scores, which are kept sorted, best first."""
    k, n_words = top.shape[1], products.shape[1]
    # Words at, at + width, at + 2 width, … are a group, so that maxima are taken of whole stretches; few groups have a
    # word that is kept.
    width = n_words // GROUP
    maxima = np.empty(width, dtype=np.float32)
    for query in range(len(queries)):
        row, length = products[query], lengths[query]
        maxima[:] = -np.inf
        for member in range(GROUP):
            stretch = slice(member * width, (member + 1) * width)
            scores, known, unsure = row[stretch], base[stretch], error[stretch]
            for at in range(width):
                scores[at] += length * unsure[at] - known[at]
                maxima[at] = max(maxima[at], scores[at])
        for word in range(GROUP * width, n_words):
            row[word] += length * error[word] - base[word]
        worst = top[query, k - 1]
        own = queries[query] - first
        if 0 <= own < n_words:
            row[own] = -np.inf
        for group in range(width):
            if maxima[group] > worst:
                for word in range(group, GROUP * width, width):
                    if row[word] > worst:
                        worst = _keep(row[word], first + word, top[query], found[query])
        for word in range(GROUP * width, n_words):
            if row[word] > worst:
                worst = _keep(row[word], first + word, top[query], found[query])


@numba.njit(cache=True)
def _keep(score: np.float32, word: int, top: Vectors, found: Neighbors) -> np.float32:
    """Enter a word into k best scores; what the k-th best one is then."""
    at = len(top) - 1
    while at > 0 and top[at - 1] < score:
        top[at] = top[at - 1]
        found[at] = found[at - 1]
        at -= 1
    top[at] = score
    found[at] = word
    worst: np.float32 = top[-1]
    return worst


@numba.njit(cache=True)
def _rank(
    vectors: Vectors,
    queries: npt.NDArray[np.int64],
    found: Neighbors,
    cut: Floats,
    ids: Neighbors,
    squares: Floats,
    proven: Neighbors,
) -> None:
    """Sort each query's candidates by (squared distance, row); proven are those nearer than ``cut``."""
    k = found.shape[1]
    distance = np.empty(k)
    for query in range(len(queries)):
        square = squares[query]
        _measure(vectors, queries[query], found[query], distance)
        for candidate in range(k):
            row, measured = found[query, candidate], distance[candidate]
            at = candidate
            while at > 0 and (square[at - 1] > measured or (square[at - 1] == measured and ids[query, at - 1] > row)):
                square[at] = square[at - 1]
                ids[query, at] = ids[query, at - 1]
                at -= 1
            square[at] = measured
            ids[query, at] = row
        count = 0
        while count < k and square[count] < cut[query]:
            count += 1
        proven[query] = count
