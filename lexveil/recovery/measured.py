"""How many replaced words an adversary gets back, by frequency band, measured on texts whose words
are known.

What comes out is a function of source texts: it is for whoever may see them, and never published
beside an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.evaluation.scores import DIGITS
from lexveil.recovery.bands import ALL, BANDS
from lexveil.recovery.shares import Share
from lexveil.types import Bytes, Flags, Ids

READERS = ("by_word", "by_context", "by_neural")  # who need nothing but public text and the output
GUESSES = (*READERS, "without_output", "knowing_rest")
LISTED = "listed"  # beside the frequency bands: the words of the user's list


@dataclass(frozen=True, slots=True, repr=False)
class Replaced:
    """Words that were replaced, as numbers of the vocabulary, (n,) each. They are source text.

    Attributes:
        source: what stood there.
        answers: what the output (``unchanged``) and each of GUESSES take for it; None if nobody
            guesses so.
    """

    source: Ids
    answers: dict[str, Ids | None]

    @classmethod
    def joined(cls, parts: Sequence[Replaced]) -> Replaced:
        """Those of several data sets, one after the other."""
        answers: dict[str, Ids | None] = {}
        for name in parts[0].answers:
            each = [answer for part in parts if (answer := part.answers[name]) is not None]
            answers[name] = np.concatenate(each) if each else None
        return cls(np.concatenate([part.source for part in parts]), answers)

    def shares(self, bands: Bytes, listed: Flags | None) -> dict[str, dict[str, object]]:
        """The shares that are right, with their 95% intervals, of all words and by band, as JSON
        values.

        Args:
            bands: (W,) the band of each word of the vocabulary, as a number in ``BANDS``.
            listed: (W,) whether the user lists it as sensitive; None if there is no list.
        """
        rows = {ALL: np.ones(len(self.source), dtype=np.bool_)}
        rows |= {band: bands[self.source] == number for number, band in enumerate(BANDS)}
        if listed is not None:
            rows[LISTED] = listed[self.source]
        right = {
            name: None if answer is None else answer == self.source
            for name, answer in self.answers.items()
        }
        return {
            band: {
                "n": int(np.count_nonzero(chosen)),
                **{
                    name: None if flags is None else _share(flags[chosen])
                    for name, flags in right.items()
                },
            }
            for band, chosen in rows.items()
        }


def _share(right: Flags) -> dict[str, float | None]:
    """Of no word there is no share."""
    found = Share.of(int(np.count_nonzero(right)), len(right))
    share = round(found.share, DIGITS) if found.n else None
    return {"share": share, "low": round(found.low, DIGITS), "high": round(found.high, DIGITS)}
