"""The public list of screened words, which are no replacements, and what takes their place.

The list is lexveil/models/not_put_out.txt. What takes the place of its words follows from a model's vectors and is kept
in the user's cache: among all words of a large model it takes a second to find.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from lexveil import paths
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
    return ScreenedWords(frozenset(line for line in lines if line and line[0] not in "#["), sha256(file))


def replacements(
    vectors: Vectors, screened: Flags, key: str, make: Callable[[Vectors, Flags], Ids | None]
) -> Ids | None:
    """(W,) what ``make`` finds, from the cache where it was found before; a file that was changed is not believed.

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
    if (made := make(vectors, screened)) is not None:
        with suppress(OSError), atomic_file(file) as partial, partial.open("wb") as out:
            np.save(out, made, allow_pickle=False)
    return made
