"""Exact nearest neighbours by blocked float32 matrix products, near ties decided in float64.

The result is that of a float64 scan: wherever float32 rounding could have changed an answer, the candidates within
the rounding bound are measured again in float64. So it depends neither on block sizes nor on the number of threads.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from lexveil.types import Rows, Vectors

Queries = npt.NDArray[np.float64]
Distances = npt.NDArray[np.float64]

# Scores of 1024 x 2048 float32 are reduced to maxima before they leave the cache.
QUERY_BLOCK = 1024
WORD_BLOCK = 2048
GROUP = 16  # words that share one maximum
FEW = 8  # up to so many neighbours the maxima of the groups find the candidates; beyond, whole rows are cut
ROW_VALUES = 4_000_000  # scores held at a time where whole rows are kept; those of ROWS queries if that is more,
ROWS = 256  # because fewer are not worth what a matrix product does before it starts
CUT_ROWS = 8


class ExactSearch:
    """Nearest rows of a fixed set of vectors, Euclidean.

    Maximises <q, u> - |u|²/2, which orders the words u as the distance |q - u| does. Rows that are equally near are
    ordered by row number. Peak memory beside the vectors: about V/16 x 1024 float32 and 50 MB.
    """

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self.half_norms = (np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64) / 2).astype(np.float32)
        self._longest = float(np.sqrt(2 * self.half_norms.max(initial=0.0)))

    def nearest(self, queries: Queries) -> Rows:
        """The nearest row of each query.

        Args:
            queries: (n, p) float64, finite.

        Returns:
            (n,) int64; of equally near rows the lowest.
        """
        return self.nearest_k(queries, 1)[0][:, 0]

    def nearest_k(self, queries: Queries, k: int) -> tuple[Rows, Distances]:
        """The k nearest rows of each query, nearest first (ties: lowest row), with their distances.

        Args:
            queries: (n, p) float64, finite.
            k: cut to V.

        Returns:
            (n, k) int64 and (n, k) float64, as a float64 scan would give them.
        """
        k = min(k, len(self.vectors))
        ids, squares = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k))
        if k <= FEW:
            for start in range(0, len(queries) if k else 0, QUERY_BLOCK):
                block = slice(start, start + QUERY_BLOCK)
                ids[block], squares[block] = self._few(np.ascontiguousarray(queries[block], dtype=np.float64), k)
        else:
            at_once = min(max(ROWS, ROW_VALUES // len(self.vectors)), len(queries))
            scores = np.empty((at_once, len(self.vectors)), dtype=np.float32)  # once: fresh memory is slow
            for start in range(0, len(queries), max(at_once, 1)):
                block = slice(start, start + at_once)
                some = np.ascontiguousarray(queries[block], dtype=np.float64)
                ids[block], squares[block] = self._many(some, k, scores[: len(some)])
        return ids, np.sqrt(squares)

    def _few(self, queries: Queries, k: int) -> tuple[Rows, Distances]:
        n, n_groups = len(queries), -(-len(self.vectors) // GROUP)
        single = np.ascontiguousarray(queries.T, dtype=np.float32)
        maxima = np.empty((n_groups, n), dtype=np.float32)
        block = -(-WORD_BLOCK // GROUP) * GROUP
        scores = np.empty((block, n), dtype=np.float32)
        for first in range(0, len(self.vectors), block):
            words = self.vectors[first : first + block]
            here = scores[: len(words)]
            np.matmul(words, single, out=here)
            here -= self.half_norms[first : first + block, None]
            whole, group = len(words) // GROUP, first // GROUP
            np.max(here[: whole * GROUP].reshape(whole, GROUP, n), axis=1, out=maxima[group : group + whole])
            if whole * GROUP < len(words):
                np.max(here[whole * GROUP :], axis=0, out=maxima[group + whole])
        # A word among the k nearest has a score of at least the k-th largest maximum, up to rounding.
        threshold = (_largest(maxima, k) if k <= n_groups else np.full(n, -np.inf)) - self._slack(queries)
        groups, of = np.nonzero(maxima >= threshold.astype(np.float32))
        ids, squares = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.inf)
        _measure_groups(self.vectors, queries, groups, of, GROUP, ids, squares)
        return ids, squares

    def _many(self, queries: Queries, k: int, scores: Vectors) -> tuple[Rows, Distances]:
        np.matmul(queries.astype(np.float32), self.vectors.T, out=scores)
        slack = self._slack(queries).astype(np.float32)
        ids, squares = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k))
        # Columns j, j + n_groups, j + 2 n_groups, … are a group, so that minima are taken of whole stretches.
        n_groups = len(self.vectors) // GROUP
        if n_groups < 2 * k:
            n_groups = 0
        for first in range(0, len(queries), CUT_ROWS):
            rows = slice(first, first + CUT_ROWS)
            part = scores[rows]
            np.subtract(self.half_norms, part, out=part)  # half the squared distance, up to a constant of the query
            grouped = part[:, : n_groups * GROUP].reshape(len(part), GROUP, n_groups)
            # The k smallest minima are k words, so no word farther than all of them is among the k nearest.
            minima = grouped.min(axis=1) if n_groups else part
            cut = np.partition(minima, k - 1, axis=1)[:, k - 1] + slack[rows]
            _cut_rows(self.vectors, queries[rows], part, minima, cut, n_groups, ids[rows], squares[rows])
        return ids, squares

    def _slack(self, queries: Queries) -> Distances:
        """Twice the largest error of a float32 score: (p + 8) rounding steps of |q| |u| + |u|²/2; a little more."""
        size = np.sqrt(np.einsum("np,np->n", queries, queries)) * self._longest + self._longest**2
        slack: Distances = 2.01 * (self.vectors.shape[1] + 8) * 2.0**-24 * size
        return slack

    def neighbors(self, k: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The k nearest other rows of every row, nearest first, with their distances.

        Returns:
            (V, k) int32 and (V, k) float32; k is cut to V - 1.
        """
        n = len(self.vectors)
        k = min(k, n - 1)
        ids, distances = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=np.float32)
        for start in range(0, n if k > 0 else 0, QUERY_BLOCK):
            block = slice(start, start + QUERY_BLOCK)
            near, far = self.nearest_k(self.vectors[block].astype(np.float64), k + 1)
            # Leave the row itself out; where more than k equal rows come before it, the last one instead.
            own = near == np.arange(start, start + len(near))[:, None]
            own[~own.any(axis=1), -1] = True
            ids[block], distances[block] = near[~own].reshape(-1, k), far[~own].reshape(-1, k)
        return ids, distances


def pair_distances(vectors: Vectors, left: Rows, right: Rows) -> Distances:
    """Euclidean distances in float64 between rows ``left`` and ``right`` (n,) of the vectors, shape (n,)."""
    return np.sqrt(_measure_pairs(vectors, left, right))


def distance_rows(vectors: Vectors, rows: Rows) -> Distances:
    """Euclidean distances in float64 of n rows of the vectors to all V of them, shape (n, V)."""
    every = np.arange(len(vectors))
    table = np.empty((len(rows), len(vectors)))
    for i, row in enumerate(rows):
        table[i] = _measure_rows(vectors, every, vectors[row])
    return np.sqrt(table, out=table)


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def squared_distance(left: Vectors, right: Queries) -> float:  # pragma: no cover - compiled
    """|left - right|² in float64; exactly 0 for equal rows. Only the order of additions is left to the compiler."""
    total = 0.0
    for i in range(left.shape[0]):
        difference = np.float64(left[i]) - np.float64(right[i])
        total += difference * difference
    return total


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def squared_distance_of_rows(vectors: Vectors, left: int, right: int) -> float:  # pragma: no cover - compiled
    """The same of two rows. A row as an array of its own would cost more than the distance: its owners are counted."""
    total = 0.0
    for i in range(vectors.shape[1]):
        difference = np.float64(vectors[left, i]) - np.float64(vectors[right, i])
        total += difference * difference
    return total


@numba.njit(cache=True)
def _largest(maxima: Vectors, k: int) -> Vectors:  # pragma: no cover - compiled
    """The k-th largest value of each column."""
    top = np.full((k, maxima.shape[1]), -np.inf, dtype=np.float32)
    for group in range(maxima.shape[0]):
        for column in range(maxima.shape[1]):
            value = maxima[group, column]
            for place in range(k):
                if value > top[place, column]:
                    value, top[place, column] = top[place, column], value
    kth: Vectors = top[k - 1]
    return kth


@numba.njit(cache=True)
def _measure_groups(
    vectors: Vectors, queries: Queries, groups: Rows, of: Rows, size: int, ids: Rows, squares: Distances
) -> None:  # pragma: no cover - compiled
    """Keep the k nearest of the words in the groups named for each query. Groups come in ascending order."""
    k = ids.shape[1]
    for pair in range(len(groups)):
        query = of[pair]
        for row in range(groups[pair] * size, min((groups[pair] + 1) * size, len(vectors))):
            square = squared_distance(vectors[row], queries[query])
            if square >= squares[query, k - 1]:
                continue
            place = k - 1
            while place > 0 and square < squares[query, place - 1]:
                squares[query, place] = squares[query, place - 1]
                ids[query, place] = ids[query, place - 1]
                place -= 1
            squares[query, place] = square
            ids[query, place] = row


@numba.njit(cache=True)
def _cut_rows(
    vectors: Vectors,
    queries: Queries,
    scores: Vectors,
    minima: Vectors,
    cut: Vectors,
    n_groups: int,
    ids: Rows,
    squares: Distances,
) -> None:  # pragma: no cover - compiled
    """Measure the words whose score is not above the cut, and keep the nearest of each query."""
    k, n_words = ids.shape[1], scores.shape[1]
    found = np.empty(n_words + 1, dtype=np.int64)
    for query in range(len(scores)):
        row, limit, count = scores[query], cut[query], 0
        for group in range(n_groups):
            if minima[query, group] <= limit:
                for member in range(group, n_groups * GROUP, n_groups):
                    found[count] = member
                    count += row[member] <= limit
        for place in range(n_groups * GROUP, n_words):
            found[count] = place
            count += row[place] <= limit
        near = np.sort(found[:count])
        measured = np.empty(count)
        for place in range(count):
            measured[place] = squared_distance(vectors[near[place]], queries[query])
        order = np.argsort(measured, kind="mergesort")  # stable: of equal distances the lowest row comes first
        for place in range(k):
            ids[query, place] = near[order[place]]
            squares[query, place] = measured[order[place]]


@numba.njit(cache=True)
def _measure_rows(vectors: Vectors, rows: Rows, query: Queries) -> Distances:  # pragma: no cover - compiled
    squares = np.empty(len(rows))
    for i in range(len(rows)):
        squares[i] = squared_distance(vectors[rows[i]], query)
    return squares


@numba.njit(cache=True)
def _measure_pairs(vectors: Vectors, left: Rows, right: Rows) -> Distances:  # pragma: no cover - compiled
    squares = np.empty(len(left))
    for i in range(len(left)):
        squares[i] = squared_distance(vectors[left[i]], vectors[right[i]])
    return squares


def approximate_neighbors(vectors: Vectors, k: int, seed: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The same table by pynndescent: near neighbours, not always the nearest; for large vocabularies only.

    One job, because its result depends on the number of jobs. Returns (V, k) int32 and (V, k) float32.
    """
    from pynndescent import NNDescent

    k = min(k, len(vectors) - 1)
    # A graph of fewer than 30 neighbours loses many of the nearest ones; build that and cut it.
    wide = min(max(k + 1, 30), len(vectors) - 1)
    index = NNDescent(vectors, metric="euclidean", n_neighbors=wide, random_state=seed % 2**32, n_jobs=1)
    ids, distances = (table[:, : k + 1] for table in index.neighbor_graph)
    # Leave the word itself out, wherever among equal distances it stands; else drop the farthest.
    own = ids == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    return (
        ids[~own].reshape(len(vectors), k).astype(np.int32),
        distances[~own].reshape(len(vectors), k).astype(np.float32),
    )
