"""Word screen: the public list of words that are never written as replacements, and the words that
are written instead.

The list is lexveil/models/blocklist.txt. The name of each part stands in brackets above the words
of that part. A request chooses parts, and the words of these parts are screened. The nearest
unscreened words follow from a model's vectors. They are stored in the user's cache, because the
search among all words of a large model takes a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np

from lexveil.base import paths
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import atomic_file
from lexveil.base.types import Flags, Vectors, WrittenNumbers
from lexveil.core.accounting.record import ScreenRecord
from lexveil.core.embeddings.exact_search import ExactSearch
from lexveil.core.screen_parts import PARTS

LANGUAGE = "en"  # language of the words of the list


class ListedWords(NamedTuple):
    """Words of the screening list by part, as single words in normal form, and the SHA-256 of the
    file.
    """

    by_part: dict[str, frozenset[str]]
    sha256: str


@cache
def listed_words() -> ListedWords:
    """Return the public list of screened words, which are never written. A word may belong to
    several parts.
    """
    file = paths.MODELS / "blocklist.txt"
    words: dict[str, list[str]] = {part: [] for part in PARTS}
    listed = list[str]()
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            listed = words[line[1:-1]]
        elif line and not line.startswith("#"):
            listed.append(line)
    return ListedWords({part: frozenset(some) for part, some in words.items()}, sha256(file))


@cache
def screened_words(parts: tuple[str, ...]) -> frozenset[str]:
    """Return the words of the given parts of the screening list."""
    by_part = listed_words().by_part
    return frozenset[str]().union(*(by_part[part] for part in parts))


def screen_record(parts: Sequence[str]) -> ScreenRecord:
    """Return the statement about the word screen for a privacy record: the screened parts, and the
    SHA-256 of the list.
    """
    return ScreenRecord(parts=[*parts], sha256=listed_words().sha256)


def is_screened(tokens: Sequence[str], words: frozenset[str]) -> Flags:
    """Return whether each of n tokens contains a screened word, (n,). The word may be the whole
    token, a part between hyphens, or a word of a collocation. A possessive 's is ignored.
    """
    return np.fromiter((_holds(token, words) for token in tokens), np.bool_, len(tokens))


def _holds(token: str, words: frozenset[str]) -> bool:
    whole = token.split("_")
    forms = {form for word in whole for form in (word, *word.split("-"))}
    bare = {form.removesuffix("'s") for form in forms}
    return not words.isdisjoint(forms | bare)


def nearest_of_others(vectors: Vectors, screened: Flags) -> WrittenNumbers | None:
    """Return the word to write for each of W drawn words, as numbers (W,). An unscreened word is
    written unchanged, and a screened word is replaced by the nearest unscreened word. The result is
    None if no word is screened, or all words are.

    The written word follows from the drawn word alone, never from a source. The replacement is
    post-processing of the mechanism's output, so every bound stays valid
    (docs/proofs/composition.md).

    Args:
        vectors: (W, p) vectors of the words.
        screened: (W,) whether each word is screened.
    """
    others = np.flatnonzero(~screened)
    if len(others) in (0, len(screened)):
        return None
    instead = np.arange(len(screened))
    # Building an 8-bit screen would take longer than it saves.
    search = ExactSearch(vectors[others], screens=False)
    instead[screened] = others[search.nearest(vectors[screened].astype(np.float64))]
    return WrittenNumbers(instead)


def replacements(vectors: Vectors, screened: Flags, key: str) -> WrittenNumbers | None:
    """Return the word to write for each of W drawn words, as ``nearest_of_others`` computes it. If
    the cache has the result, load it.

    A cached file is rejected if it would write a screened word, or replace an unscreened word.
    Whether each screened word has its nearest replacement is not checked, because no guarantee
    depends on it.

    Args:
        vectors: (W, p) vectors of the words.
        screened: (W,) whether each word is screened.
        key: cache key of the vectors, see ``neighborhoods.key_of``.
    """
    name = hashlib.sha256(key.encode() + np.packbits(screened).tobytes()).hexdigest()[:32]
    file = paths.user_cache() / "screened" / f"{name}.npy"
    with suppress(OSError, ValueError, IndexError):
        kept = WrittenNumbers(np.load(file, allow_pickle=False))
        own = kept == np.arange(len(screened))
        if kept.dtype == np.int64 and (own == ~screened).all() and not screened[kept].any():
            return kept
    if (made := nearest_of_others(vectors, screened)) is not None:
        with suppress(OSError), atomic_file(file) as partial, partial.open("wb") as out:
            np.save(out, made, allow_pickle=False)
    return made
