"""The public list of screened words, which are no replacements, and what takes their place.

The list is lexveil/models/not_put_out.txt. What takes the place of its words follows from a model's
vectors and is kept in the user's cache: among all words of a large model it takes a second to find.
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
    """Single words in normal form, and the sha256 of the list."""

    words: frozenset[str]
    sha256: str


@cache
def screened_words() -> ScreenedWords:
    """The list, of general English."""
    file = paths.MODELS / "not_put_out.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    return ScreenedWords(
        frozenset(line for line in lines if line and line[0] not in "#["), sha256(file)
    )


def is_screened(tokens: Sequence[str], words: frozenset[str]) -> Flags:
    """Whether each of n tokens is a word of the list, or a collocation with one; (n,)."""
    return np.fromiter(
        (not words.isdisjoint(token.split("_")) for token in tokens), np.bool_, len(tokens)
    )


def nearest_of_others(vectors: Vectors, screened: Flags) -> Ids | None:
    """(W,) each word; in place of a screened one the nearest that is not; None if there is nothing
    to replace, or by.

    It follows from the drawn word alone, never from a source, so it is post-processing of the
    mechanism's output, and every bound stays as it is (docs/proofs/composition.md).

    Args:
        vectors: (W, p).
        screened: (W,).
    """
    others = np.flatnonzero(~screened)
    if len(others) in (0, len(screened)):
        return None
    instead = np.arange(len(screened))
    # words of 8 bits would take longer to make than they save
    search = ExactSearch(vectors[others], screens=False)
    instead[screened] = others[search.nearest(vectors[screened].astype(np.float64))]
    return instead


def replacements(vectors: Vectors, screened: Flags, key: str) -> Ids | None:
    """(W,) what ``nearest_of_others`` finds, from the cache where it was found before.

    A file by which a screened word would come out, or another word be replaced, is not believed;
    that a screened word has the nearest other is not checked. Nothing that is promised depends on
    which it has.

    Args:
        vectors: (W, p).
        screened: (W,).
        key: of the vectors, see ``neighborhoods.key_of``.
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
