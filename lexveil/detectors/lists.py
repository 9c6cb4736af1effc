"""The user's own lists: words and phrases that are found wherever they stand, or that no detector
may claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from lexveil.detectors.given import type_name
from lexveil.errors import RequestError
from lexveil.text.spans import Span, Words
from lexveil.types import Flags

LISTED = "LISTED"  # the type of what stands before the first heading of a list
_HEADING = re.compile(r"\[([^\[\]]*)\]")

Phrase = tuple[str, ...]


def entries(
    lines: Iterable[str], where: str, first_type: str = LISTED
) -> Iterator[tuple[str, str]]:
    """The entries of a list and their types: one a line, below the heading [TYPE] of its type.

    Args:
        where: the list is, for messages, which quote nothing of it.
        first_type: of entries above all headings.

    Raises:
        RequestError: if a heading names no type, or does not end.
    """
    kind = first_type
    for number, line in enumerate(lines, 1):
        entry = line.strip()
        if heading := _HEADING.fullmatch(entry):
            name = type_name(heading[1])
            if name is None:
                raise RequestError(
                    f"{where}, line {number}: no name of a type; write a heading such as [PERSON]"
                )
            kind = name
        elif entry.startswith("[") and "]" not in entry:
            raise RequestError(
                f"{where}, line {number}: a heading without its ]; write one such as [PERSON]"
            )
        elif entry:
            yield entry, kind


@dataclass(frozen=True, repr=False)
class Phrases:
    """Words and phrases in normal form, each with its type: capitals and white space make no
    difference.
    """

    types: Mapping[Phrase, str]

    @classmethod
    def of(cls, lines: Iterable[str], where: str) -> Phrases:
        """Read a list.

        Raises:
            RequestError: if it has no entry, or one with two types.
        """
        from lexveil.text.tokenize import sentences

        types: dict[Phrase, str] = {}
        for entry, kind in entries(lines, where):
            phrase = tuple(chain.from_iterable(sentences(entry)))
            if phrase and types.setdefault(phrase, kind) != kind:
                raise RequestError(f"{where}: an entry is below two headings; leave it below one")
        if not types:
            raise RequestError(f"{where}: holds no word; write a word or phrase a line")
        return cls(types)

    @cached_property
    def _first_words(self) -> dict[int, frozenset[str]]:
        """The first words of the phrases of each number of words."""
        sizes = sorted({len(phrase) for phrase in self.types})
        return {
            size: frozenset(phrase[0] for phrase in self.types if len(phrase) == size)
            for size in sizes
        }

    def matches(self, words: Words, *, in_parts: bool = False) -> Iterator[tuple[int, int, str]]:
        """Where the phrases stand among words: the first word, the one after the last, the type.

        A word is also met with 's at its end.

        Args:
            in_parts: whether a word is met as a part of one with hyphens, too.
        """
        variants = [_variants(form, in_parts) for form in words.forms]
        for size, first_words in self._first_words.items():
            is_first = np.array(
                [not first_words.isdisjoint(forms) for forms in variants], dtype=np.bool_
            )
            starts = np.flatnonzero(is_first[words.word])
            starts = starts[starts + size <= len(words.word)]
            starts = starts[words.text_of[starts] == words.text_of[starts + size - 1]]
            for start in starts.tolist():
                window = [variants[number] for number in words.word[start : start + size].tolist()]
                for phrase in _phrases(window):
                    if (kind := self.types.get(phrase)) is not None:
                        yield start, start + size, kind

    def spans(self, words: Words) -> Iterator[tuple[int, Span]]:
        """The same as spans of characters, each with its text."""
        for first, last, kind in self.matches(words, in_parts=True):
            start, end = int(words.spans[first, 0]), int(words.spans[last - 1, 1])
            yield int(words.text_of[first]), Span(start, end, kind)

    def covered(self, words: Words) -> Flags:
        """(m,) which words are part of a phrase."""
        covered = np.zeros(len(words.word), dtype=bool)
        for first, last, _ in self.matches(words):
            covered[first:last] = True
        return covered


def _variants(form: str, in_parts: bool) -> tuple[str, ...]:
    bare = form.removesuffix("'s")
    parts = bare.split("-") if in_parts and "-" in bare else ()
    return tuple(dict.fromkeys((form, bare, *parts)))


def _phrases(window: list[tuple[str, ...]]) -> Iterator[Phrase]:
    """What phrases the words of a window may be; of several words, the first and the last may be
    parts of others.
    """
    if len(window) == 1:
        yield from ((form,) for form in window[0])
        return
    inner = tuple(forms[0] for forms in window[1:-1])
    yield from ((first, *inner, last) for first in window[0] for last in window[-1])
