"""Graph of the exact nearest neighbours of every word. Float32 matrix products find candidates,
and float64 distances rank them.

Every list is cut where float32 rounding could have hidden a nearer word, so the entries of the
remaining list are proven to be the nearest words of a float64 scan, in order, with equally near
words ordered by row. ``Scanner`` finds words beyond the proven lists. Results therefore do not
depend on block sizes, threads or the processor's matrix kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Flags, Floats, Ids, Orders, Vectors

Neighbors = npt.NDArray[np.int32]

QUERY_BLOCK = 256
WORD_BLOCK = 2048
GROUP = 16  # words whose scores are compared together
# additional candidates, so that near ties among the last candidates seldom need a scan
SPARE = 8


@dataclass(frozen=True, slots=True)
class Graph:
    """Nearest-neighbour graph: the nearest other words of n words out of V.

    Attributes:
        ids: (n, k) int32 rows, nearest first; -1 in empty places.
        proven: (n,) int32; the first ``proven`` entries of a row are the nearest words, in order.
        distances: (n, k) float64, with squares added in the order of the dimensions; None for an
            approximate graph.
    """

    ids: Neighbors
    proven: Neighbors
    distances: Floats | None = None


class Scanner:
    """Search for the nearest allowed word among a fixed set of V vectors, for one
    query at a time.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        squares = np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64)
        self.half_norms = (squares / 2).astype(np.float32)
        self.norms = np.sqrt(squares)
        self._longest = float(self.norms.max(initial=0.0))
        # A float32 score <q, u> - |u|²/2 is wrong by at most this times |q| |u| + |u|²/2: a
        # rounding step for each of p products and sums, and some for the other operations.
        self.rounding = (self.vectors.shape[1] + 16) * 2.0**-24

    def nearest(self, row: int, forbidden: npt.NDArray[np.bool_]) -> int:
        """Return the word nearest to word ``row`` that is not forbidden; of equally near words,
        the one with the lowest row.

        Args:
            row: row of the query.
            forbidden: (V,) words to skip; must be true for ``row`` and not for all words.
        """
        scores = self.vectors @ self.vectors[row]
        scores -= self.half_norms
        scores[forbidden] = -np.inf
        # Twice the largest error of a score: (p + 8) rounding steps of |q| |u| + |u|².
        slack = (
            2
            * (self.vectors.shape[1] + 8)
            * 2.0**-24
            * (self.norms[row] + self._longest)
            * self._longest
        )
        close = np.flatnonzero(scores >= scores.max() - slack)
        return int(close[np.argmin(squared_distances(self.vectors, row, close))])


def exact_graph(scanner: Scanner, k: int, queries: Ids) -> Graph:
    """Return the graph of the exact k nearest other words of each query. A query is the row number
    of a word; k is reduced to V - 1 if it is larger.
    """
    vectors, n_words = scanner.vectors, len(scanner.vectors)
    k = min(k, n_words - 1)
    ids = np.empty((len(queries), max(k, 0)), dtype=np.int32)
    proven = np.zeros(len(queries), dtype=np.int32)
    squares = np.empty(ids.shape)
    if k <= 0:
        return Graph(ids, proven, squares)
    # Words are ranked by the upper bound of their scores. Rounding errors of short words are small.
    relative = scanner.rounding
    base = ((1 - relative) * scanner.norms**2 / 2).astype(np.float32)
    error = (relative * scanner.norms).astype(np.float32)
    buffer = np.empty((QUERY_BLOCK, min(WORD_BLOCK, n_words)), dtype=np.float32)
    for start in range(0, len(queries), QUERY_BLOCK):
        block = queries[start : start + QUERY_BLOCK]
        chosen = vectors[block]
        lengths = scanner.norms[block].astype(np.float32)
        top = np.full((len(block), k), -np.inf, dtype=np.float32)
        neighbors = np.full((len(block), k), -1, dtype=np.int32)
        for first in range(0, n_words, WORD_BLOCK):
            words = slice(first, first + WORD_BLOCK)
            scores = buffer[: len(block), : len(vectors[words])]
            np.matmul(chosen, vectors[words].T, out=scores)
            own = np.flatnonzero((block >= first) & (block < first + scores.shape[1]))
            scores[own, block[own] - first] = -np.inf
            _keep_best(scores, base[words], error[words], lengths, first, top, neighbors)
        # lower bound on the squared distance of all rejected words
        cut = np.full(len(block), np.inf)
        if k < n_words - 1:
            cut = (scanner.norms[block] ** 2 - 2 * top[:, -1].astype(np.float64)) * (1 - 1e-9)
        part = slice(start, start + len(block))
        ids[part], squares[part], proven[part] = _rank(vectors, block, neighbors, cut)
    return Graph(ids, proven, np.sqrt(squares, out=squares))


def nearest_others(vectors: Vectors, queries: Ids, k: int) -> tuple[Neighbors, Floats]:
    """Return the k nearest other words of each query, and their distances: nearest first, equally
    near words by row. A query is the row number of a word.

    Returns:
        (n, k) int32 and (n, k) float64; k is reduced to V - 1 if it is larger.
    """
    graph = exact_graph(Scanner(vectors), k + SPARE, queries)
    k = min(k, len(vectors) - 1)
    assert graph.distances is not None
    ids = graph.ids[:, :k].copy()
    distances = graph.distances[:, :k].copy()
    every = np.arange(len(vectors))
    for i in np.flatnonzero(graph.proven < k).tolist():
        squares = squared_distances(vectors, queries[i], every)
        squares[queries[i]] = np.inf
        ids[i] = np.argsort(squares, kind="stable")[:k]
        distances[i] = np.sqrt(squares[ids[i]])
    return ids, distances


@kernel()
def squared_distances(vectors: Vectors, row: int, others: Ids) -> Floats:
    """Return the squared distances of one word to other words in float64, summed in the order of
    the dimensions.
    """
    out = np.empty(len(others))
    _measure(vectors, row, others, out)
    return out


@kernel()
def _measure(vectors: Vectors, row: int, others: Ids | Neighbors, out: Floats) -> None:
    """Write the squared distances of one word to other words into ``out``. Four words are
    processed at a time, so that their sums run in parallel.
    """
    last = len(others) - 1
    for i in range(0, len(others), 4):
        j = min(i + 1, last)
        k = min(i + 2, last)
        m = min(i + 3, last)
        a = others[i]
        b = others[j]
        c = others[k]
        d = others[m]
        first = second = third = fourth = 0.0
        for column in range(vectors.shape[1]):
            value = np.float64(vectors[row, column])
            to_a = value - np.float64(vectors[a, column])
            to_b = value - np.float64(vectors[b, column])
            to_c = value - np.float64(vectors[c, column])
            to_d = value - np.float64(vectors[d, column])
            first += to_a * to_a
            second += to_b * to_b
            third += to_c * to_c
            fourth += to_d * to_d
        out[i] = first
        out[j] = second
        out[k] = third
        out[m] = fourth


@kernel(fastmath={"nnan", "nsz"})
def _keep_best(
    products: Vectors,
    base: Vectors,
    error: Vectors,
    lengths: Vectors,
    first: int,
    top: Vectors,
    neighbors: Neighbors,
) -> None:
    """Merge one block of products into each query's k best scores, which stay sorted with the best
    first.
    """
    k = top.shape[1]
    n_words = products.shape[1]
    # Words at, at + width, at + 2 width, … form a group, so that maxima are taken over whole
    # stretches; few groups have a word that enters the best.
    width = n_words // GROUP
    maxima = np.empty(width, dtype=np.float32)
    for query in range(len(products)):
        row = products[query]
        length = lengths[query]
        maxima[:] = -np.inf
        for member in range(GROUP):
            stretch = slice(member * width, (member + 1) * width)
            scores = row[stretch]
            known = base[stretch]
            unsure = error[stretch]
            for at in range(width):
                scores[at] += length * unsure[at] - known[at]
                maxima[at] = max(maxima[at], scores[at])
        for word in range(GROUP * width, n_words):
            row[word] += length * error[word] - base[word]
        worst = top[query, k - 1]
        for group in range(width):
            if maxima[group] > worst:
                for word in range(group, GROUP * width, width):
                    if row[word] > worst:
                        worst = _keep(row[word], first + word, top[query], neighbors[query])
        for word in range(GROUP * width, n_words):
            if row[word] > worst:
                worst = _keep(row[word], first + word, top[query], neighbors[query])


@kernel()
def _keep(score: np.float32, word: int, top: Vectors, neighbors: Neighbors) -> np.float32:
    """Insert a word into a sorted list of the k best scores; return the new k-th best score."""
    at = len(top) - 1
    while at > 0 and top[at - 1] < score:
        top[at] = top[at - 1]
        neighbors[at] = neighbors[at - 1]
        at -= 1
    top[at] = score
    neighbors[at] = word
    worst: np.float32 = top[-1]
    return worst


@kernel()
def _rank(
    vectors: Vectors, queries: Ids, neighbors: Neighbors, cut: Floats
) -> tuple[Neighbors, Floats, Neighbors]:
    """Sort each query's candidates by (squared distance, row), and count the candidates that are
    proven to be the nearest, whose distance is below ``cut``.
    """
    k = neighbors.shape[1]
    ids = np.empty_like(neighbors)
    squares = np.empty(neighbors.shape)
    proven = np.zeros(len(neighbors), dtype=np.int32)
    distance = np.empty(k)
    for query in range(len(queries)):
        square = squares[query]
        _measure(vectors, queries[query], neighbors[query], distance)
        for candidate in range(k):
            row = neighbors[query, candidate]
            measured = distance[candidate]
            rank = candidate
            while rank > 0 and (
                square[rank - 1] > measured
                or (square[rank - 1] == measured and ids[query, rank - 1] > row)
            ):
                square[rank] = square[rank - 1]
                ids[query, rank] = ids[query, rank - 1]
                rank -= 1
            square[rank] = measured
            ids[query, rank] = row
        while proven[query] < k and square[proven[query]] < cut[query]:
            proven[query] += 1
    return ids, squares, proven


@kernel()
def walk(
    ids: Orders,
    proven: Orders,
    active: Orders,
    used: Flags,
    current: int,
    order: Orders,
    filled: int,
    target: int,
) -> tuple[int, int]:
    """Extend a word order along the nearest-neighbour graph until ``target`` words are placed, or
    until all proven neighbours of a word are used. Return the last word and the number of placed
    words.
    """
    while filled < target:
        following = -1
        for rank in range(proven[current]):
            candidate = ids[current, rank]
            if candidate >= 0 and not used[candidate]:
                following = candidate
                break
        if following < 0:
            break
        current = following
        used[current] = True
        order[filled] = active[current]
        filled += 1
    return current, filled
