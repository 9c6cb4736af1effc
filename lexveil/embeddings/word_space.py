"""WordSpace: a vocabulary and its vectors, frozen; conversion to and from gensim's KeyedVectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lexveil.types import Counts, Vectors

if TYPE_CHECKING:
    from gensim.models import KeyedVectors


@dataclass(frozen=True, slots=True)
class WordSpace:
    """One embedding.

    Attributes:
        tokens: V tokens, by falling count; collocations join their words by ``_``.
        vectors: (V, p) float32, may be memory-mapped.
        counts: (V,) occurrences in the corpus it was trained on.
    """

    tokens: Sequence[str]
    vectors: Vectors
    counts: Counts

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.vectors) == len(self.counts):
            raise ValueError(f"{len(self.tokens)} tokens, {len(self.vectors)} vectors, {len(self.counts)} counts")

    def to_keyed_vectors(self) -> KeyedVectors:
        """The same embedding as gensim's KeyedVectors, for its queries and its export in word2vec format."""
        from gensim.models import KeyedVectors

        keyed = KeyedVectors(self.vectors.shape[1])
        keyed.add_vectors(list(self.tokens), np.asarray(self.vectors))
        for token, count in zip(self.tokens, self.counts, strict=True):
            keyed.set_vecattr(token, "count", int(count))
        return keyed


def unit_vectors(vectors: Vectors) -> Vectors:
    """Every row brought to length 1, float32; a row of zeros stays."""
    norms = np.sqrt(np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64))
    unit: Vectors = (vectors / np.where(norms > 0, norms, 1.0)[:, None]).astype(np.float32)
    return unit
