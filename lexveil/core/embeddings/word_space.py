"""Word space: an immutable vocabulary with its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.base.types import Counts, Ids, Vectors


@dataclass(frozen=True, slots=True)
class WordSpace:
    """Embedding: tokens with their vectors and counts.

    Attributes:
        tokens: V tokens, by falling count; collocations join their words by ``_``.
        vectors: (V, p) float32, may be memory-mapped.
        counts: (V,) occurrences in the training corpus.
    """

    tokens: Sequence[str]
    vectors: Vectors
    counts: Counts

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.vectors) == len(self.counts):
            raise ValueError(
                f"numbers differ: {len(self.tokens)} tokens, {len(self.vectors)} vectors, "
                f"{len(self.counts)} counts"
            )

    @property
    def n_words(self) -> Ids:
        """(V,) number of words in each token, which is above 1 for a collocation."""
        return np.array([token.count("_") + 1 for token in self.tokens], dtype=np.int64)


def unit_vectors(vectors: Vectors) -> Vectors:
    """Scale every row to length 1, float32; a row of zeros stays zero."""
    norms = np.sqrt(np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64))
    unit: Vectors = (vectors / np.where(norms > 0, norms, 1.0)[:, None]).astype(np.float32)
    return unit
