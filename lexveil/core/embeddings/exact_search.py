"""Exact nearest neighbours by blocked products of 8-bit or float32 numbers. Near ties are decided
in float64.

The result equals that of a float64 scan: if rounding could have changed an answer, the distances of
all candidates within the rounding bound are computed again in float64. So the result does not
depend on block sizes, the number of threads, or the kind of products. For few neighbours of many
queries, 8-bit products are used if the processor has an instruction for them.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Rows, Vectors

if TYPE_CHECKING:
    from lexveil.core.embeddings.screen import Screen

Queries = npt.NDArray[np.float64]
Distances = npt.NDArray[np.float64]

# Blocks of 1024 x 2048 float32 scores are reduced to maxima before they leave the cache.
QUERY_BLOCK = 1024
WORD_BLOCK = 2048
GROUP = 16  # words that share one maximum
FEW = 8  # greatest number of neighbours that 8-bit products screen
# Rounding the words to 8 bits takes about as long as SCREEN_QUERIES searches; loading the code for
# the rounding takes as long as SCREEN_WORK multiplications.
SCREEN_QUERIES = 1024
SCREEN_WORK = 5e9
FARTHEST = 1e15  # greatest length for which a score fits into float32


class ExactSearch:
    """Exact search for the nearest rows of a fixed matrix of vectors, by Euclidean distance.

    The search maximizes <q, u> - |u|²/2, which orders the words u as the distance |q - u| does.
    Equally near rows are ordered by row number. Peak memory in addition to the vectors: about V/16
    x 1024 float32 and 50 MB, and V·p bytes for products of 8 bits.

    Args:
        vectors: (V, p), taken as float32.
        screens: whether many searches may use 8-bit products instead of float32 products; affects
            time and memory, never results.
    """

    def __init__(self, vectors: Vectors, screens: bool = True) -> None:
        # The view is read-only, like a memory-mapped file: for a writable array, every kernel would
        # be compiled once more.
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)[:]
        self.vectors.flags.writeable = False
        halves = np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64) / 2
        with np.errstate(over="ignore"):  # words beyond FARTHEST are searched in float64
            self.half_norms = halves.astype(np.float32)
        self._longest = float(np.sqrt(2 * halves.max(initial=0.0)))
        self._asked = 0 if screens else -1
        self._screen: Screen | None = None

    def fresh(self) -> ExactSearch:
        """Return a copy in its initial state, without the query count and the 8-bit preselection
        that earlier queries caused.
        """
        search = copy(self)
        search._asked = min(self._asked, 0)
        search._screen = None
        return search

    def nearest(self, queries: Queries) -> Rows:
        """Return the nearest row of each query.

        Args:
            queries: (n, p) float64, finite.

        Returns:
            (n,) int64; of equally near rows, the lowest.
        """
        return self.nearest_k(queries, 1)[0][:, 0]

    def nearest_k(self, queries: Queries, k: int) -> tuple[Rows, Distances]:
        """Return the k nearest rows of each query and their distances, nearest first; of equally
        near rows, the lowest comes first.

        Args:
            queries: (n, p) float64, finite.
            k: number of rows, at most V.

        Returns:
            (n, k) int64 and (n, k) float64, equal to the result of a float64 scan.
        """
        k = min(k, len(self.vectors))
        ids = np.empty((len(queries), k), dtype=np.int64)
        squares = np.empty((len(queries), k))
        n = len(queries) if k else 0
        if k <= FEW:
            self._prepare(n)
        for start in range(0, n, QUERY_BLOCK):
            block = slice(start, start + QUERY_BLOCK)
            ids[block], squares[block] = self._nearest(
                np.ascontiguousarray(queries[block], dtype=np.float64), k
            )
        return ids, np.sqrt(squares)

    def _nearest(self, queries: Queries, k: int) -> tuple[Rows, Distances]:
        """Return the k nearest rows of each query in a block, and the squared distances, by the
        fastest method that applies.
        """
        lengths = np.sqrt(np.einsum("np,np->n", queries, queries))
        far = ~(lengths + self._longest < FARTHEST)
        if self._screen is not None and k <= FEW:
            ids, squares, answered = self._screen.nearest_k(queries, k)
        else:
            ids = np.empty((len(queries), k), dtype=np.int64)
            squares = np.empty((len(queries), k))
            answered = np.zeros(len(queries), dtype=np.bool_)
        for query in np.flatnonzero(far & ~answered).tolist():
            ids[query], squares[query] = self._scanned(queries, query, k)
        left = np.flatnonzero(~answered & ~far)
        if len(left):
            ids[left], squares[left] = self._by_products(queries[left], k)
        return ids, squares

    def _scanned(self, queries: Queries, query: int, k: int) -> tuple[Rows, Distances]:
        """Return the k nearest rows of one query by scanning: the distance of every row is
        computed in float64.
        """
        from lexveil.core.embeddings.kernels.search import measure_pairs

        every = np.arange(len(self.vectors))
        squares = measure_pairs(self.vectors, queries, every, np.full(len(every), query))
        order = np.argsort(squares, kind="stable")[:k]
        return order, squares[order]

    def _prepare(self, n: int) -> None:
        """Build the 8-bit copy of the words, once the number of queries, including the next n, is
        large enough to save more time than the rounding takes.
        """
        if self._asked < 0 or self._screen is not None:
            return
        self._asked += n
        if self._asked >= SCREEN_QUERIES and self._asked * self.vectors.size >= SCREEN_WORK:
            from lexveil.core.embeddings.kernels.dot import processor_kind
            from lexveil.core.embeddings.kernels.screen import LONGEST_DISTANCE
            from lexveil.core.embeddings.screen import WIDEST, Screen

            kind = processor_kind()
            if kind >= 0 and self.vectors.shape[1] <= WIDEST and self._longest < LONGEST_DISTANCE:
                self._screen = Screen(self.vectors, kind)

    def _by_products(self, queries: Queries, k: int) -> tuple[Rows, Distances]:
        from lexveil.core.embeddings.kernels.search import measure_groups

        n = len(queries)
        n_groups = -(-len(self.vectors) // GROUP)
        single = np.ascontiguousarray(queries.T, dtype=np.float32)
        maxima = np.empty((n_groups, n), dtype=np.float32)
        block = -(-WORD_BLOCK // GROUP) * GROUP
        scores = np.empty((block, n), dtype=np.float32)
        for first in range(0, len(self.vectors), block):
            words = self.vectors[first : first + block]
            here = scores[: len(words)]
            np.matmul(words, single, out=here)
            here -= self.half_norms[first : first + block, None]
            whole = len(words) // GROUP
            group = first // GROUP
            np.max(
                here[: whole * GROUP].reshape(whole, GROUP, n),
                axis=1,
                out=maxima[group : group + whole],
            )
            if whole * GROUP < len(words):
                np.max(here[whole * GROUP :], axis=0, out=maxima[group + whole])
        # A word among the k nearest has a score of at least the k-th largest maximum, up to
        # rounding.
        kth = np.full(n, -np.inf)
        if k <= n_groups:
            kth = (
                maxima.max(axis=0)
                if k == 1
                else np.partition(maxima, n_groups - k, axis=0)[n_groups - k]
            )
        groups, of = np.nonzero(maxima >= (kth - self._slack(queries)).astype(np.float32))
        ids = np.full((n, k), -1, dtype=np.int64)
        squares = np.full((n, k), np.inf)
        measure_groups(self.vectors, queries, groups, of, GROUP, ids, squares)
        return ids, squares

    def _slack(self, queries: Queries) -> Distances:
        """Return an upper bound on twice the largest rounding error of a float32 score: (p + 8)
        rounding steps of |q| |u| + |u|²/2, rounded up.

        The bound includes the float64 error of squared distances. This error dominates for queries
        that are more than about 10^8 times as long as a word vector.
        """
        p = self.vectors.shape[1]
        lengths = np.sqrt(np.einsum("np,np->n", queries, queries))
        slack: Distances = 2.01 * (p + 8) * 2.0**-24 * (lengths * self._longest + self._longest**2)
        slack += (p + 16) * 2.0**-50 * (lengths + self._longest) ** 2
        return slack


def pair_distances(vectors: Vectors, left: Rows, right: Rows) -> Distances:
    """Return the Euclidean distance, in float64, of each pair of rows ``left`` and ``right`` (n,)
    of the vectors, shape (n,).
    """
    from lexveil.core.embeddings.kernels.search import measure_pairs

    return np.sqrt(measure_pairs(vectors, vectors, left, right))


def pair_products(vectors: Vectors, left: Rows, right: Rows) -> Distances:
    """Return the inner product, in float64, of each pair of rows ``left`` and ``right`` (n,) of
    the vectors, shape (n,).
    """
    from lexveil.core.embeddings.kernels.search import multiply_pairs

    return multiply_pairs(vectors, left, right)


def distance_rows(vectors: Vectors, rows: Rows) -> Distances:
    """Return the Euclidean distances, in float64, from n rows of the vectors to all V rows, shape
    (n, V).
    """
    every = np.arange(len(vectors))
    table = np.empty((len(rows), len(vectors)))
    for i, row in enumerate(rows):
        table[i] = pair_distances(vectors, every, np.full(len(vectors), row))
    return table


def approximate_neighbors(
    vectors: Vectors, k: int, seed: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return k near neighbours of every word, found approximately by pynndescent, which may miss
    some of the nearest. This function serves large vocabularies only.

    pynndescent runs one job, because its result depends on the number of jobs.

    Returns:
        Rows, (V, k) int32, and distances, (V, k) float32.
    """
    from pynndescent import NNDescent

    k = min(k, len(vectors) - 1)
    # A graph of fewer than 30 neighbours misses many of the nearest ones: build 30 and cut the
    # lists.
    wide = min(max(k + 1, 30), len(vectors) - 1)
    index = NNDescent(
        vectors, metric="euclidean", n_neighbors=wide, random_state=seed % 2**32, n_jobs=1
    )
    ids, distances = (table[:, : k + 1] for table in index.neighbor_graph)
    # Drop the word itself, wherever it is among equal distances; if it is missing, drop the
    # farthest.
    own = ids == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    return (
        ids[~own].reshape(len(vectors), k).astype(np.int32),
        distances[~own].reshape(len(vectors), k).astype(np.float32),
    )
