"""How many replaced words a reader gets back, by frequency band, measured on texts whose words are known.

What comes out is a function of source texts: it is for whoever may see them, and never published beside an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lexveil.evaluation.scores import DIGITS
from lexveil.recovery.bands import ALL, BANDS
from lexveil.recovery.context import Guesses
from lexveil.recovery.shares import Share
from lexveil.types import Bytes, Flags, Ids

GUESSES = ("by_word", "by_context", "without_output")
LISTED = "listed"  # beside the frequency bands: the words of the user's list


@dataclass(frozen=True, slots=True, repr=False)
class Replaced:
    """Words that were replaced, as numbers of the vocabulary, (n,) each. They are source text.

    Attributes:
        source: what stood there.
        output: what came out.
        by_word: what is guessed from the output alone; None if there is no reader of the mechanism.
        by_context: from the text's outputs and a language model; None without one.
        without_output: from the language model and the certain tokens; None without one.
    """

    source: Ids
    output: Ids
    by_word: Ids | None
    by_context: Ids | None = None
    without_output: Ids | None = None

    @classmethod
    def of(cls, source: Ids, output: Ids, guesses: Guesses) -> Replaced:
        """Words that were decoded by their context."""
        return cls(source, output, guesses.by_word, guesses.by_context, guesses.without_output)

    def take(self, rows: Flags | slice) -> Replaced:
        """Some of them."""
        each = {one.name: getattr(self, one.name) for one in fields(self)}
        taken: dict[str, Any] = {name: None if some is None else some[rows] for name, some in each.items()}
        return Replaced(**taken)

    @classmethod
    def joined(cls, parts: Sequence[Replaced]) -> Replaced:
        """Those of several data sets, one after the other."""
        each = {one.name: [getattr(part, one.name) for part in parts] for one in fields(cls)}
        whole: dict[str, Any] = {name: None if some[0] is None else np.concatenate(some) for name, some in each.items()}
        return cls(**whole)

    def shares(self, bands: Bytes, listed: Flags | None) -> dict[str, dict[str, object]]:
        """The shares that are right, with their 95% intervals, of all words and by band, as JSON values.

        Args:
            bands: (W,) the band of each word of the vocabulary, as a number in ``BANDS``.
            listed: (W,) whether the user lists it as sensitive; None if there is no list.
        """
        rows: dict[str, Flags | slice] = {ALL: slice(None)}
        rows |= {band: bands[self.source] == number for number, band in enumerate(BANDS)}
        if listed is not None:
            rows[LISTED] = listed[self.source]
        return {band: self.take(some)._entry() for band, some in rows.items()}

    def _entry(self) -> dict[str, object]:
        entry: dict[str, object] = {"n": len(self.source), "unchanged": _share(self.output == self.source)}
        for name in GUESSES:
            guessed = getattr(self, name)
            entry[name] = None if guessed is None else _share(guessed == self.source)
        return entry


def _share(right: Flags) -> dict[str, float | None]:
    """Of no word there is no share."""
    made = Share.of(int(np.count_nonzero(right)), len(right))
    share = made.share if made.n else None
    return {
        "share": None if share is None else round(share, DIGITS),
        "low": round(made.low, DIGITS),
        "high": round(made.high, DIGITS),
    }
