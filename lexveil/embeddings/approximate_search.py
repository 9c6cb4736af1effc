"""Nearest words by pynndescent's graph index: for words among words, at large vocabularies. Never inside a proof."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.embeddings.exact_search import Queries
from lexveil.types import Rows, Vectors

WIDTH = 30  # neighbours in the graph; with fewer, searches lose many answers
EPSILON = 0.1  # pynndescent's own default: how far beyond the best found a search goes on looking


class ApproximateSearch:
    """Near rows of a fixed set of vectors, not always the nearest; seeded, and one job, so it is repeatable."""

    def __init__(self, vectors: Vectors, seed: int) -> None:
        from pynndescent import NNDescent

        self.index = NNDescent(
            np.ascontiguousarray(vectors, dtype=np.float32),
            metric="euclidean",
            n_neighbors=min(WIDTH, len(vectors) - 1),
            random_state=seed % 2**32,
            n_jobs=1,
        )

    def nearest(self, queries: Queries) -> Rows:
        """A near row of each query (n, p), hopefully the nearest; (n,) int64."""
        ids, _ = self.index.query(queries.astype(np.float32), k=1, epsilon=EPSILON)
        rows: npt.NDArray[np.int64] = ids[:, 0].astype(np.int64)
        return rows
