"""The public list of screened words, which are never put out, and their replacements.

The list is lexveil/models/not_put_out.txt. The replacements of its words follow from a model's
vectors and are kept in the user's cache, because the search among all words of a large model takes
a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from lexveil import paths
from lexveil.embeddings.exact_search import ExactSearch
from lexveil.runtime.hashes import sha256
from lexveil.runtime.tables import atomic_file
from lexveil.types import Flags, Ids, Vectors


class ScreenedWords(NamedTuple):
    """Screened single words in normal form, and the sha256 of the list."""

    words: frozenset[str]
    sha256: str


@cache
def screened_words() -> ScreenedWords:
    """Return the list of screened words of general English."""
    file = paths.MODELS / "not_put_out.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    return ScreenedWords(
        frozenset(line for line in lines if line and line[0] not in "#["), sha256(file)
    )


def is_screened(tokens: Sequence[str], words: frozenset[str]) -> Flags:
    """Return whether each of n tokens is a screened word, or a collocation with one; (n,)."""
    return np.fromiter(
        (not words.isdisjoint(token.split("_")) for token in tokens), np.bool_, len(tokens)
    )


def nearest_of_others(vectors: Vectors, screened: Flags) -> Ids | None:
    """Return (W,) numbers: each word itself, or for a screened word the nearest word that is not
    screened. None if no word is screened, or all are.

    The result follows from the drawn word alone, never from a source. It is post-processing of the
    mechanism's output, and every bound stays as it is (docs/proofs/composition.md).

    Args:
        vectors: (W, p) vectors of the words.
        screened: (W,) whether each word is screened.
    """
    others = np.flatnonzero(~screened)
    if len(others) in (0, len(screened)):
        return None
    instead = np.arange(len(screened))
    # building an 8-bit screen would take longer than it saves
    search = ExactSearch(vectors[others], screens=False)
    instead[screened] = others[search.nearest(vectors[screened].astype(np.float64))]
    return instead


def replacements(vectors: Vectors, screened: Flags, key: str) -> Ids | None:
    """Return the result of ``nearest_of_others``, (W,), from the cache if it has one.

    A cached file is rejected if a screened word would be put out, or another word replaced. Whether
    each screened word has its nearest replacement is not checked, because no guarantee depends on
    it.

    Args:
        vectors: (W, p) vectors of the words.
        screened: (W,) whether each word is screened.
        key: cache key of the vectors, see ``neighborhoods.key_of``.
    """
    name = hashlib.sha256(key.encode() + np.packbits(screened).tobytes()).hexdigest()[:32]
    file = paths.user_cache() / "screened" / f"{name}.npy"
    with suppress(OSError, ValueError, IndexError):
        kept: Ids = np.load(file, allow_pickle=False)
        own = kept == np.arange(len(screened))
        if kept.dtype == np.int64 and (own == ~screened).all() and not screened[kept].any():
            return kept
    if (made := nearest_of_others(vectors, screened)) is not None:
        with suppress(OSError), atomic_file(file) as partial, partial.open("wb") as out:
            np.save(out, made, allow_pickle=False)
    return made
