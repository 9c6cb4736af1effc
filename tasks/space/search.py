"""Exact nearest neighbours by blocked float32 matrix products, near ties decided in float64.

The result is that of a float64 scan: wherever float32 rounding could have changed the winner, the candidates within
the rounding bound are measured again in float64. So it depends neither on block sizes nor on the number of threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.space.word_space import Vectors

Rows = npt.NDArray[np.int64]
Queries = npt.NDArray[np.float64]

QUERY_BLOCK = 512
WORD_BLOCK = 8192


class ExactSearch:
    """Nearest rows of a fixed set of vectors, Euclidean.

    Maximises <q, u> - |u|²/2, which orders the words u as the distance |q - u| does.
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
        best = np.empty(len(queries), dtype=np.int64)
        for start in range(0, len(queries), QUERY_BLOCK):
            block = slice(start, start + QUERY_BLOCK)
            best[block] = self._nearest_block(queries[block])
        return best

    def _nearest_block(self, queries: Queries) -> Rows:
        single = queries.astype(np.float32)
        slack = self._slack(queries)
        rows = np.arange(len(queries))
        best = np.full(len(queries), -np.inf, dtype=np.float32)
        winner = np.zeros(len(queries), dtype=np.int64)
        close = np.zeros(len(queries), dtype=bool)
        for first in range(0, len(self.vectors), WORD_BLOCK):
            scores = single @ self.vectors[first : first + WORD_BLOCK].T
            scores -= self.half_norms[first : first + WORD_BLOCK]
            local = scores.argmax(axis=1)
            top = scores[rows, local]
            # Two words within the rounding bound of each other: inside this block, or against an earlier block.
            scores[rows, local] = -np.inf
            close |= (scores.max(axis=1) >= np.maximum(best, top) - slack) | (np.abs(top - best) <= slack)
            better = top > best
            winner[better] = first + local[better]
            best[better] = top[better]
        for query in np.flatnonzero(close):
            winner[query] = self._decide(queries[query], single[query], best[query] - slack[query])
        return winner

    def _slack(self, queries: Queries) -> npt.NDArray[np.float32]:
        """Twice the largest error of a float32 score: (p + 8) rounding steps of |q| |u| + |u|²/2."""
        size = np.sqrt(np.einsum("np,np->n", queries, queries)) * self._longest + self._longest**2
        slack: npt.NDArray[np.float32] = (2 * (self.vectors.shape[1] + 8) * 2.0**-24 * size).astype(np.float32)
        return slack

    def _decide(self, query: Queries, single: Vectors, threshold: np.float32) -> int:
        """Measure all candidates that may be nearest in float64."""
        candidates = np.flatnonzero(self.vectors @ single - self.half_norms >= threshold)
        differences = self.vectors[candidates].astype(np.float64) - query
        return int(candidates[np.argmin((differences * differences).sum(axis=1))])

    def neighbors(self, k: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The k nearest other rows of every row, nearest first, with their distances.

        Ranking is float32; distances are measured in float64 and the k rows are ordered by them (ties: lowest row).

        Returns:
            (V, k) int32 and (V, k) float32; k is cut to V - 1.
        """
        n = len(self.vectors)
        k = min(k, n - 1)
        ids, distances = np.empty((n, k), dtype=np.int32), np.empty((n, k), dtype=np.float32)
        if k == 0:
            return ids, distances
        for start in range(0, n, QUERY_BLOCK):
            block = self.vectors[start : start + QUERY_BLOCK]
            rows = np.arange(len(block))
            top_scores = np.empty((len(block), 0), dtype=np.float32)
            top_ids = np.empty((len(block), 0), dtype=np.int64)
            for first in range(0, n, WORD_BLOCK):
                scores = block @ self.vectors[first : first + WORD_BLOCK].T
                scores -= self.half_norms[first : first + WORD_BLOCK]
                own = start + rows - first
                inside = (own >= 0) & (own < scores.shape[1])
                scores[rows[inside], own[inside]] = -np.inf
                keep = min(k, scores.shape[1])
                part = np.argpartition(-scores, keep - 1, axis=1)[:, :keep]
                top_scores = np.hstack([top_scores, np.take_along_axis(scores, part, axis=1)])
                top_ids = np.hstack([top_ids, first + part])
                if top_ids.shape[1] > k:
                    part = np.argpartition(-top_scores, k - 1, axis=1)[:, :k]
                    top_scores = np.take_along_axis(top_scores, part, axis=1)
                    top_ids = np.take_along_axis(top_ids, part, axis=1)
            top_ids.sort(axis=1)
            exact = np.empty(top_ids.shape)
            for column in range(k):
                difference = self.vectors[top_ids[:, column]].astype(np.float64) - block
                exact[:, column] = np.sqrt((difference * difference).sum(axis=1))
            order = np.argsort(exact, axis=1, kind="stable")
            ids[start : start + len(block)] = np.take_along_axis(top_ids, order, axis=1)
            distances[start : start + len(block)] = np.take_along_axis(exact, order, axis=1)
        return ids, distances


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
