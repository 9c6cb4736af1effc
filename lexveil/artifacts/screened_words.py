"""The public list of screened words, which are no replacements: lexveil/models/not_put_out.txt."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lexveil import paths
from lexveil.runtime.hashes import sha256


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
