"""Character spans that a detector found, as arrays: which span claims each word, and the token
borders that follow from the claims.

A span claims each word that it touches, as a whole. If several spans touch a word, the longest span
claims it; on a tie, the span that begins first, then the span whose type comes first in the
alphabet. No span claims an allowed word. Adjacent words claimed by the same span form one piece,
and no token crosses the border of a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Flags, Ids, Int32

NOBODY = -1


class Span(NamedTuple):
    """Character span of a detected entity in a text, and its type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True, repr=False)
class Words:
    """The m words of a batch of texts, in text order. They contain source text.

    Attributes:
        forms: the distinct normal forms.
        word: (m,) the form of each word.
        spans: (m, 2) character span of each word in its text.
        text_of: (m,) the text of each word, ascending.
    """

    forms: Sequence[str]
    word: Int32
    spans: Int32
    text_of: Int32


@dataclass(frozen=True, slots=True, repr=False)
class Spans:
    """The s spans of a batch of texts, in any order.

    Attributes:
        text: (s,) the text of each span, from 0.
        start, end: (s,) first and end character of each span.
        type: (s,) type of each span, as an index into ``types``.
        types: the names of the types, in alphabetical order.
    """

    text: Ids
    start: Ids
    end: Ids
    type: Ids
    types: tuple[str, ...]

    @classmethod
    def of(cls, found: Iterable[tuple[int, Span]]) -> Spans:
        """Build the arrays from pairs of a text number and a span."""
        rows = list(found)
        types = tuple(sorted({span.type for _, span in rows}))
        number = {name: i for i, name in enumerate(types)}
        table = np.array(
            [(text, span.start, span.end, number[span.type]) for text, span in rows], dtype=np.int64
        ).reshape(-1, 4)
        text, start, end, kind = table.T
        return cls(text, start, end, kind, types)


@dataclass(frozen=True, slots=True, repr=False)
class Claims:
    """For each of the m words of a batch, the entity type of the span that claims the word.
    Adjacent words claimed by the same span form one piece.

    Attributes:
        type: (m,) int16, the type of the span that claims the word, as an index into ``types``; -1
            if no span claims it.
        begins: (m,) whether the word begins a piece, or a stretch of words that no span claims.
        types: the names of the types.
        whole: (n_types,) whether a piece of the type is one token; otherwise its words are ordinary
            words.
    """

    type: npt.NDArray[np.int16]
    begins: Flags
    types: tuple[str, ...]
    whole: Flags

    def cut(self, offsets: Ids) -> Ids:
        """Return the offsets of sentences together with the borders of claimed pieces, ascending.
        No collocation crosses any of them.
        """
        return np.union1d(offsets, np.flatnonzero(self.begins)).astype(np.int64)

    def joined(self, lengths: npt.NDArray[np.signedinteger[Any]]) -> Int32:
        """Join the words of each claimed piece that is to be one token. Return the number of words
        of each token at its first word, 0 elsewhere.
        """
        joined = lengths.astype(np.int32)
        is_whole = self.is_whole
        joined[is_whole] = 0
        starts = np.flatnonzero(self.begins)
        sizes = np.diff(np.append(starts, len(self.begins)))
        chosen = is_whole[starts]
        joined[starts[chosen]] = sizes[chosen]
        return joined

    @property
    def is_whole(self) -> Flags:
        """(m,) whether the word belongs to a claimed piece that is one token."""
        whole: Flags = (self.type >= 0) & np.append(self.whole, False)[self.type]
        return whole


Claim = Callable[[Words], Claims | None]


@dataclass(frozen=True, slots=True, repr=False)
class Found:
    """Entity types of n tokens, as detectors found them.

    Attributes:
        type: (n,) int16, the type of each token, as an index into ``types``; -1 for a token that no
            detector found.
        types: the names of the types.
    """

    type: npt.NDArray[np.int16]
    types: tuple[str, ...]

    @property
    def is_found(self) -> Flags:
        """(n,) whether a detector found the token."""
        found: Flags = self.type >= 0
        return found

    def names(self) -> list[str | None]:
        """Return the entity type of each token; None for a token that no detector found."""
        names: list[str | None] = np.array([*self.types, None], dtype=object)[self.type].tolist()
        return names


def owners(spans: Spans, words: Words, allowed: Flags | None = None) -> Ids:
    """Return (m,) the index of the span that claims each word; ``NOBODY`` for a word that no span
    claims.

    Args:
        allowed: (m,) whether a word is allowed, so that no span may claim it; None if no words are
            allowed.
    """
    first, last = _touched(spans, words)
    real = np.flatnonzero(first < last)  # a span that touches no word claims none
    first = first[real]
    last = last[real]
    # A span claims whole words, so its length is the length of its words.
    start = words.spans[first, 0].astype(np.int64)
    length = words.spans[last - 1, 1] - start
    order = np.lexsort((spans.type[real], start, -length))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    sizes = last - first
    number = np.repeat(np.arange(len(real)), sizes)
    touched = first[number] + np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    best = np.full(len(words.word), len(order), dtype=np.int64)
    np.minimum.at(best, touched, rank[number])
    owner = np.append(real[order], NOBODY)[best]
    if allowed is not None:
        owner[allowed] = NOBODY
    return owner


def _touched(spans: Spans, words: Words) -> tuple[Ids, Ids]:
    """Return (s,) the first word that each span touches, and (s,) the word after the last one. The
    two numbers are equal if a span touches no word.
    """
    longest = int(max(words.spans[:, 1].max(initial=0), spans.end.max(initial=0))) + 2
    # Words are in order and do not overlap, so one binary search over all texts finds each end.
    before = words.text_of.astype(np.int64) * longest
    starts = before + words.spans[:, 0]
    ends = before + words.spans[:, 1]
    first = np.searchsorted(ends, spans.text * longest + spans.start, side="right")
    last = np.searchsorted(starts, spans.text * longest + spans.end, side="left")
    return first.astype(np.int64), np.maximum(first, last).astype(np.int64)


def claims_of(spans: Spans, words: Words, whole: Flags, allowed: Flags | None = None) -> Claims:
    """Return which words of a batch the spans claim, with their entity types.

    Args:
        whole: (n_types,) whether a piece of the type is one token.
        allowed: (m,) whether a word is allowed, so that no span may claim it, as in ``owners``.
    """
    owner = owners(spans, words, allowed)
    begins = np.ones(len(owner), dtype=bool)
    begins[1:] = (np.diff(owner) != 0) | (np.diff(words.text_of) != 0)
    kind = np.append(spans.type, NOBODY)[owner].astype(np.int16)
    return Claims(kind, begins, spans.types, whole)
