"""Shares of replaced words that adversaries recover, by frequency band, on texts whose source words
are known.

The result is a function of source texts. It is only for people who may see the source texts, and is
never published with an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.base.types import Bytes, Flags, Ids
from lexveil.lab.evaluation.scores import DECIMALS
from lexveil.readers.bands import ALL, BANDS
from lexveil.readers.shares import Share

# Adversaries who have public text and the output only.
READERS = ("by_word", "by_context", "by_neural")
GUESSES = (*READERS, "without_output", "knowing_rest")
LISTED = "listed"  # band of the words on the user's list, besides the frequency bands


@dataclass(frozen=True, slots=True, repr=False)
class Replaced:
    """The source words at replaced positions, and the guesses of each adversary, as word ids of the
    vocabulary, (n,) each. They are source text.

    Attributes:
        source: the ids of the true words.
        answers: guesses by the name of the adversary: ``unchanged`` guesses the output word, the
            others are the adversaries in GUESSES; None for an adversary that was not run.
    """

    source: Ids
    answers: dict[str, Ids | None]

    @classmethod
    def joined(cls, parts: Sequence[Replaced]) -> Replaced:
        """Concatenate the replaced words and guesses of several data sets."""
        answers: dict[str, Ids | None] = {}
        for name in parts[0].answers:
            each = [answer for part in parts if (answer := part.answers[name]) is not None]
            answers[name] = np.concatenate(each) if each else None
        return cls(np.concatenate([part.source for part in parts]), answers)

    def shares(self, bands: Bytes, listed: Flags | None) -> dict[str, dict[str, object]]:
        """Return the share of correct guesses of each adversary, with 95% intervals, over all words
        and by frequency band, as JSON values.

        Args:
            bands: (W,) the frequency band of each word of the vocabulary, as a number in ``BANDS``.
            listed: (W,) whether the user lists the word as sensitive; None if there is no list.
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
    """Return the share of correct guesses with its interval, as JSON values; the share is None if
    there are no words.
    """
    of_right = Share.of(int(np.count_nonzero(right)), len(right))
    share = round(of_right.share, DECIMALS) if of_right.n else None
    return {
        "share": share,
        "low": round(of_right.low, DECIMALS),
        "high": round(of_right.high, DECIMALS),
    }
