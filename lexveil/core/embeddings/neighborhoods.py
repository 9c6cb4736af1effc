"""Exact lists of the nearest words of every word, with their distances. The lists are built once
per embedding and shared by all callers.

A list depends only on the vectors. Candidates come from float32 matrix products, but every list
equals the result of a float64 scan that adds squares in the order of the dimensions. So the lists
of any two processes, on any processors, are equal bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Ids, Vectors

Near = npt.NDArray[np.int32]

# words of a list, including the word itself: more than truncated Gumbel needs for a million words
LISTED = 64


@dataclass(frozen=True)
class NearTable:
    """Table of nearest-word lists for the first n words of a vocabulary. In each list the word
    itself comes first, and then the other words by distance; ties are ordered by number.

    Attributes:
        ids: (n, K) int32.
        distances: (n, K) float64; 0 for the word itself.
        largest: the largest distance between two words of the vocabulary; None if unknown.
    """

    ids: Near
    distances: Floats
    largest: float | None = None

    def __len__(self) -> int:
        return len(self.ids)


class Neighborhoods:
    """Lists of the K nearest words of every word in a vocabulary. The lists come from a table, or
    are computed on request.

    Attributes:
        vectors: (V, p) float32.
        size: K, at most ``LISTED``.
        table: precomputed lists of the first words.
    """

    def __init__(self, vectors: Vectors, table: NearTable | None = None) -> None:
        self.vectors = vectors
        n_words = len(vectors)
        self.size = min(LISTED, n_words)
        none = NearTable(np.empty((0, self.size), dtype=np.int32), np.empty((0, self.size)))
        self.table = none if table is None else table
        if self.table.ids.shape[1] != self.size or len(self.table) > n_words:
            raise ValueError(
                f"the table has lists of shape {self.table.ids.shape}, which do not fit "
                f"{n_words} words"
            )
        self._own: NearTable | None = None
        self._place: Ids | None = None
        self._n_own = 0

    def fresh(self) -> Neighborhoods:
        """Return a copy without the lists that were computed on request, because they reveal which
        words were requested earlier.
        """
        return Neighborhoods(self.vectors, self.table)

    def tables(self, words: Ids) -> Iterator[tuple[Ids, NearTable, Ids]]:
        """Yield the nearest-word lists of n words, as rows of at most two tables; missing lists
        are computed.

        Yields:
            The positions of some of the words, a table, and the rows of those words in it.
        """
        stored = words < len(self.table)
        if stored.any():
            chosen = np.flatnonzero(stored)
            yield chosen, self.table, words[chosen]
        if not stored.all():
            chosen = np.flatnonzero(~stored)
            own, place = self._made(words[chosen])
            yield chosen, own, place[words[chosen]]

    def lists(self, words: Ids) -> NearTable:
        """Return the nearest-word lists of n words as one new table."""
        ids = np.empty((len(words), self.size), dtype=np.int32)
        distances = np.empty((len(words), self.size))
        for chosen, table, rows in self.tables(words):
            ids[chosen] = table.ids[rows]
            distances[chosen] = table.distances[rows]
        return NearTable(ids, distances)

    def _made(self, words: Ids) -> tuple[NearTable, Ids]:
        """Compute the missing nearest-word lists of ``words``. Return the table of computed lists,
        and the row of each word's list in it.
        """
        if self._place is None:
            self._place = np.full(len(self.vectors), -1)
        new = np.unique(words)
        new = new[self._place[new] < 0]
        if self._own is None or self._n_own + len(new) > len(self._own):
            # Doubling the room keeps the total cost of copying small.
            room = min(max(2 * (self._n_own + len(new)), 256), len(self.vectors))
            own = NearTable(
                np.empty((room, self.size), dtype=np.int32), np.empty((room, self.size))
            )
            if self._own is not None:
                own.ids[: self._n_own] = self._own.ids[: self._n_own]
                own.distances[: self._n_own] = self._own.distances[: self._n_own]
            self._own = own
        if len(new):
            table = nearest_words(self.vectors, new)
            rows = slice(self._n_own, self._n_own + len(new))
            self._own.ids[rows] = table.ids
            self._own.distances[rows] = table.distances
            self._place[new] = np.arange(rows.start, rows.stop)
            self._n_own = rows.stop
        return self._own, self._place


def nearest_words(vectors: Vectors, words: Ids) -> NearTable:
    """Compute the nearest-word lists of some words.

    Args:
        vectors: (V, p) float32.
        words: (n,) numbers.
    """
    from lexveil.core.embeddings.knn_graph import nearest_others

    size = min(LISTED, len(vectors))
    ids = np.empty((len(words), size), dtype=np.int32)
    distances = np.zeros((len(words), size))
    ids[:, :1] = words[:, None]
    if size > 1:
        ids[:, 1:], distances[:, 1:] = nearest_others(vectors, words, size - 1)
    return NearTable(ids, distances)
