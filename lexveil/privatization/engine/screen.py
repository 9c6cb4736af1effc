"""Words that are not put out: what is written in their place follows from the drawn word alone, never from a source.

So it is post-processing of the mechanism's output, and every bound stays as it is (docs/proofs/composition.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexveil.embeddings.exact_search import ExactSearch
from lexveil.types import Flags, Ids, Vectors


def is_screened(tokens: Sequence[str], words: frozenset[str]) -> Flags:
    """Whether each of n tokens is a word of the list, or a collocation with one; (n,)."""
    return np.fromiter((not words.isdisjoint(token.split("_")) for token in tokens), np.bool_, len(tokens))


def nearest_of_others(vectors: Vectors, screened: Flags) -> Ids | None:
    """(W,) each word; in place of a screened one the nearest that is not; None if there is nothing to replace, or by.

    Args:
        vectors: (W, p).
        screened: (W,).
    """
    others = np.flatnonzero(~screened)
    if len(others) in (0, len(screened)):
        return None
    instead = np.arange(len(screened))
    instead[screened] = others[ExactSearch(vectors[others]).nearest(vectors[screened].astype(np.float64))]
    return instead
