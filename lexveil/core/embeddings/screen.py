"""Exact nearest-neighbour search with preselection by 8-bit products: the products preselect
words, and float64 distances decide.

Each word and each query is rounded to whole multiples of its own step. The effect of rounding on a
score is bounded (docs/proofs/screen.md), so that a word is discarded only if other words are
certainly nearer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Rows, Vectors
from lexveil.core.embeddings.kernels import screen as kernels
from lexveil.core.embeddings.kernels.dot import KINDS, QUERIES, VECTORS

ROOM = 256  # greatest number of candidates of a query
DEPTH = 15  # steps of four coordinates in one 16-bit sum
# Greatest length of the part of a vector in a 16-bit sum. The product of both bounds every sum, by
# Cauchy and Schwarz.
QUERY_LANE = 150.0
WORD_LANE = 218.0
WIDEST = 2**16  # greatest number of coordinates that 32-bit sums can hold


class Screen:
    """Preselection for exact nearest-neighbour search: the words, rounded to 8 bits. It takes
    about V·p bytes.

    Args:
        vectors: (V, p) float32, V > 0, p up to ``WIDEST``, each shorter than ``LONGEST_DISTANCE``.
        kind: the instruction, by its index in ``KINDS``.
    """

    def __init__(self, vectors: Vectors, kind: int) -> None:
        self.chosen = KINDS[kind]
        self.kind = kind
        self.vectors = vectors
        n_words, p = vectors.shape
        # Subtracting the mean vector changes no distance. It makes words shorter, and so errors
        # smaller.
        self.centre = vectors.mean(axis=0, dtype=np.float64)
        lengths = np.empty(n_words)
        for first in range(0, n_words, 4096):
            moved = vectors[first : first + 4096] - self.centre
            lengths[first : first + 4096] = np.sqrt(np.einsum("vp,vp->v", moved, moved))
        self.longest = float(lengths.max())
        self.order = np.argsort(-lengths, kind="stable")
        steps = -(-p // 4)
        self.n_chunks = -(-steps // DEPTH) if self.chosen.sums else 1
        self.depth = -(-steps // self.n_chunks)
        width = VECTORS * self.chosen.lanes
        lanes = self.chosen.lanes
        n_tiles = -(-n_words // width)
        lengths = lengths[self.order]
        starts = np.arange(0, n_words, width)
        ends = [
            lengths[starts] * (1 + 1e-9),
            lengths[np.minimum(starts + width, n_words) - 1] * (1 - 1e-9),
        ]
        sums = (n_tiles, self.n_chunks, VECTORS, 2 * lanes if self.chosen.sums else lanes)
        self.words = kernels.PackedWords(
            numbers=np.zeros(
                (n_tiles, self.n_chunks, self.depth, VECTORS, lanes, 4), dtype=np.int8
            ),
            start=np.empty(sums, dtype=np.int16 if self.chosen.sums else np.int32),
            scales=np.zeros((n_tiles, VECTORS, lanes), dtype=np.float32),
            halves=np.full((n_tiles, VECTORS, lanes), np.inf, dtype=np.float32),
            errors=np.empty((n_tiles, 3), dtype=np.float32),
            ends=np.stack(ends, axis=1),
        )
        bounds = np.zeros((n_tiles * width, 2))
        kernels.pack_words(
            vectors,
            self.order,
            self.centre,
            127,
            WORD_LANE if self.chosen.sums else 0.0,
            self.words,
            bounds,
        )
        # Sums begin with minus the contribution of the queries' offset, which cancels it; 16-bit
        # sums wrap around.
        by_sum = self.words.numbers.reshape(n_tiles, self.n_chunks, self.depth, *sums[2:], -1)
        for first in range(0, n_tiles, 64):
            some = by_sum[first : first + 64].sum(axis=(2, 5), dtype=np.int32)
            self.words.start[first : first + 64] = (-self.chosen.offset * some).astype(
                self.words.start.dtype
            )
        sizes, lacks = bounds.reshape(n_tiles, width, 2).max(axis=1).T
        self.words.errors[:, 0] = sizes * kernels.MORE
        self.words.errors[:, 1] = lacks * kernels.MORE + kernels.NOTHING
        self.words.errors[:, 2] = (
            self.words.ends[:, 0] ** 2 / 2 * kernels.ROUNDING * kernels.MORE + kernels.NOTHING
        )

    def nearest_k(self, queries: Floats, k: int) -> tuple[Rows, Floats, npt.NDArray[np.bool_]]:
        """Return the k nearest rows of each query, with the squared distances.

        Args:
            queries: (n, p) float64, finite and contiguous; about a thousand, so that they stay in
                the cache.
            k: number of rows, at most V.

        Returns:
            (n, k) int64, (n, k) float64, and (n,) whether the query was answered. A query is not
            answered if more than ``ROOM`` words are too near to distinguish, or if its length does
            not fit into single precision.
        """
        n = len(queries)
        packed = self.packed(queries)
        candidates = kernels.CandidateLists(
            lows=np.full((n, k), -np.inf),
            places=np.empty((n, ROOM), dtype=np.int64),
            highs=np.empty((n, ROOM)),
            counts=np.where(
                (packed.lengths > kernels.SHORTEST_QUERY)
                & (packed.lengths < kernels.LONGEST_DISTANCE),
                0,
                -1,
            ),
        )
        kernels.screen_by(self.kind)(self.words, packed, candidates, len(self.vectors))
        ids = np.full((n, k), -1, dtype=np.int64)
        squares = np.full((n, k), np.inf)
        kernels.decide(self.vectors, self.order, queries, packed, candidates, ids, squares)
        return ids, squares, candidates.counts >= 0

    def packed(self, queries: Floats) -> kernels.PackedQueries:
        """Round n query vectors to 8 bits."""
        n = len(queries)
        tiles = -(-len(queries) // QUERIES)
        packed = kernels.PackedQueries(
            numbers=np.empty((tiles, self.n_chunks, self.depth, QUERIES, 4), dtype=np.uint8),
            factors=np.empty((tiles, 4, QUERIES), dtype=np.float32),
            lengths=np.empty(n),
            slacks=np.empty(n),
        )
        kernels.pack_queries(
            queries,
            self.centre,
            QUERY_LANE if self.chosen.sums else 0.0,
            self.chosen.offset,
            packed,
        )
        # Bound on the float64 errors of squared distances, of centred queries and words, and of the
        # decision.
        packed.slacks[:] = (queries.shape[1] + 16) * 2.0**-50 * (packed.lengths + self.longest) ** 2
        return packed
