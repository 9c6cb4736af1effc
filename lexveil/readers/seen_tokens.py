"""Texts as an adversary sees them: kept words, outputs, and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexveil.base.types import Flags, Floats, Ids, ModelRows, WordNumbers

NOT_CERTAIN = -1  # symbol of a position without a certain word


@dataclass(frozen=True, slots=True, repr=False)
class SeenTokens:
    """The n token positions of some output texts, as an adversary sees them.

    Attributes:
        text_of: (n,) the text of each position, ascending.
        outputs: (n,) number of the output word if a word was replaced, else -1.
        epsilon: (n,) the budget of each position.
        certain: n kept words; None at a position that is unknown or has a replaced word.
        before: (n,) the token written before each position, as a row of the embedding, or -1; None
            if no adversary needs it.
        source: (n,) number of the source word. It is known only in measurements, for the adversary
            who knows the rest of the text.
        written: (n,) the token written at each position, as a row of the embedding, or -1; None if
            no adversary needs it.
    """

    text_of: Ids
    outputs: WordNumbers
    epsilon: Floats
    certain: Sequence[str | None]
    before: ModelRows | None = None
    source: WordNumbers | None = None
    written: ModelRows | None = None

    @property
    def is_certain(self) -> Flags:
        """(n,) whether the word at each position was kept."""
        return np.fromiter((word is not None for word in self.certain), np.bool_, len(self.certain))


class Symbols(NamedTuple):
    """Token positions of texts (``SeenTokens``), with an n-gram symbol for each kept token; other
    positions have the symbol NOT_CERTAIN. All arrays are (n,).

    ``first`` and ``last`` differ at the end of a sentence: the next word follows the symbol that
    begins a sentence.
    """

    text_of: Ids
    outputs: WordNumbers
    epsilon: Floats
    first: Ids
    last: Ids
    before: ModelRows
    source: WordNumbers
    written: ModelRows
    certain: Sequence[str | None]

    def part(self, start: int, stop: int) -> Symbols:
        """Return the positions ``start`` to ``stop`` - 1."""
        return Symbols._make(each[start:stop] for each in self)


def written_before(text_of: Ids, rows: ModelRows, is_dropped: Flags) -> ModelRows:
    """Return the row of the token written before each of n tokens of texts: the last earlier token
    that was not dropped.

    Args:
        text_of: (n,) the text of each token, ascending.
        rows: (n,) the row of the token written for each token, -1 if it has no row.
        is_dropped: (n,) whether the token was dropped.

    Returns:
        (n,); -1 at the beginning of a text and after a token without a row.
    """
    last = np.maximum.accumulate(np.where(is_dropped, -1, np.arange(len(rows))))
    previous = np.append(-1, last)[: len(rows)]
    known = (previous >= 0) & (text_of[previous] == text_of)
    return ModelRows(np.where(known, rows[previous], -1))


def is_new(values: Ids) -> Flags:
    """Return whether each of n values differs from the value before it; the first value counts as
    different.
    """
    new = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new
