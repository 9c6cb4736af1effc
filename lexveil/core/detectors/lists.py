"""The user's lists of words and phrases. The entries of one list are always detected; the entries
of the other are never claimed by a detector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.base.types import Flags
from lexveil.core.detectors.given import type_name
from lexveil.core.text.spans import Span, Words

LISTED = "LISTED"  # the type of entries before the first heading of a list
_HEADING = re.compile(r"\[([^\[\]]*)\]")

Phrase = tuple[str, ...]


def entries(
    lines: Iterable[str], where: str, first_type: str = LISTED
) -> Iterator[tuple[str, str]]:
    """Yield the entries of a word list with their entity types. A list has one entry per line; the
    heading [TYPE] above an entry gives its type.

    Args:
        where: location of the list, for messages, which do not quote the list.
        first_type: type of entries above all headings.

    Raises:
        RequestError: if a heading does not contain a valid type, or has no closing bracket.
    """
    kind = first_type
    for number, line in enumerate(lines, 1):
        entry = line.strip()
        if heading := _HEADING.fullmatch(entry):
            name = type_name(heading[1])
            if name is None:
                raise RequestError(
                    f"{where}, line {number}: the heading is not a valid type name; write a "
                    "heading such as [PERSON]"
                )
            kind = name
        elif entry.startswith("[") and "]" not in entry:
            raise RequestError(
                f"{where}, line {number}: the heading has no closing ]; write a heading such as "
                "[PERSON]"
            )
        elif entry:
            yield entry, kind


@dataclass(frozen=True, repr=False)
class Phrases:
    """Words and phrases in normal form, each with its entity type. Differences in capitals and
    white space are ignored.
    """

    types: Mapping[Phrase, str]

    @classmethod
    def of(cls, lines: Iterable[str], where: str) -> Phrases:
        """Parse a list of words and phrases.

        Raises:
            RequestError: if the list has no entry, or an entry has two types.
        """
        from lexveil.core.text.tokenize import sentences

        types: dict[Phrase, str] = {}
        for entry, kind in entries(lines, where):
            phrase = tuple(chain.from_iterable(sentences(entry)))
            if phrase and types.setdefault(phrase, kind) != kind:
                raise RequestError(
                    f"{where}: an entry is listed below two headings; keep it below one"
                )
        if not types:
            raise RequestError(f"{where}: the list has no entry; write one word or phrase per line")
        return cls(types)

    @cached_property
    def _first_words(self) -> dict[int, frozenset[str]]:
        """First words of all phrases, grouped by the number of words of the phrase."""
        sizes = sorted({len(phrase) for phrase in self.types})
        return {
            size: frozenset(phrase[0] for phrase in self.types if len(phrase) == size)
            for size in sizes
        }

    def matches(self, words: Words, *, in_parts: bool = False) -> Iterator[tuple[int, int, str]]:
        """Yield the occurrences of phrases in a sequence of words: the first word, the word after
        the last, and the entity type.

        A word also matches with 's at its end.

        Args:
            in_parts: whether a phrase may also match a part of a hyphenated word.
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
        """Yield the occurrences of phrases as spans of characters, each with the
        number of its text.
        """
        for first, last, kind in self.matches(words, in_parts=True):
            start = int(words.spans[first, 0])
            end = int(words.spans[last - 1, 1])
            yield int(words.text_of[first]), Span(start, end, kind)

    def covered(self, words: Words) -> Flags:
        """Return (m,) whether each word is part of a listed phrase."""
        covered = np.zeros(len(words.word), dtype=bool)
        for first, last, _ in self.matches(words):
            covered[first:last] = True
        return covered


def _variants(form: str, in_parts: bool) -> tuple[str, ...]:
    bare = form.removesuffix("'s")
    parts = bare.split("-") if in_parts and "-" in bare else ()
    return tuple(dict.fromkeys((form, bare, *parts)))


def _phrases(window: list[tuple[str, ...]]) -> Iterator[Phrase]:
    """Yield the phrases that the words of a window can form; each word is given with its
    alternative forms. In a window of several words, only the first and the last may be parts of
    hyphenated words.
    """
    if len(window) == 1:
        yield from ((form,) for form in window[0])
        return
    inner = tuple(forms[0] for forms in window[1:-1])
    yield from ((first, *inner, last) for first in window[0] for last in window[-1])
