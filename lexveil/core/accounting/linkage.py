"""Linkage risk in the form that records and commands report: how often an adversary who has
candidate texts identifies the source of an output.

The figures were measured on public texts and ship with the library; they do not depend on the
source.
"""

from __future__ import annotations

from collections.abc import Sequence

from lexveil.core.accounting.results import Number, Result
from lexveil.core.protection import MeasuredLinkage

# number of texts among which the adversaries searched for the source of an output
CANDIDATES = 1_000
PIECE = 40  # most words of such a text, if it becomes sentences of a bank
NOT_MEASURED = (
    "whoever has the original text among others can probably find it; how often was not measured "
    "for these settings"
)
SENTENCES_NOT_MEASURED = (
    "it was not measured for this bank, unit, number of sentences and epsilon how often whoever "
    "has the original text among others finds it; docs/reference/sentences.md has figures for "
    "banks of public text"
)


class LinkageAt(Result):
    """Linkage risk for texts of one length. All values are shares between 0 and 1.

    Attributes:
        words: Words of the text.
        found: Share identified by the best adversary: by structure, by words alone, or by exact
            output probabilities.
        structure: Share identified by the structure that is disclosed at every epsilon: fates of
            tokens, and kept tokens.
        naive: Share identified by an adversary who does not know the method; null if it was not
            measured.
    """

    words: int
    found: Number
    structure: Number
    naive: Number | None


class LinkageFigures(Result):
    """Linkage risk: how often an adversary identifies the source of an output among other texts,
    measured on public texts.

    Attributes:
        candidates: Number of texts of similar length, including the source; null if nothing was
            measured.
        at: Figures by length of the texts.
        sentence: The figures as a sentence for people.
    """

    candidates: int | None
    at: list[LinkageAt]
    sentence: str

    @classmethod
    def of(cls, figures: Sequence[MeasuredLinkage], *, at_level: bool) -> LinkageFigures:
        """Build the linkage figures, and the sentence that states them, from measurements.

        Args:
            figures: figures of one mechanism, strategy and level, by length; empty if nothing was
                measured.
            at_level: whether the run uses this protection level. Otherwise only linkage by
                structure applies, because it does not depend on epsilon.
        """
        if not figures:
            return cls(candidates=None, at=[], sentence=NOT_MEASURED)
        at = [
            LinkageAt(
                words=figure.n_words,
                found=round(figure.strongest if at_level else figure.structure, 4),
                structure=round(figure.structure, 4),
                naive=round(figure.naive, 4),
            )
            for figure in sorted(figures, key=lambda figure: figure.n_words)
        ]
        shortest = _of_100(at[0].found)
        longest = _of_100(at[-1].found)
        cases = f"{longest} of 100 cases"
        if shortest != longest:
            cases = (
                f"{shortest} (texts of {at[0].words} words) to {longest} ({at[-1].words} words) of "
                "100 cases"
            )
        how = "" if at_level else " by its structure alone, whatever epsilon is,"
        return cls(
            candidates=CANDIDATES,
            at=at,
            sentence=f"whoever has the original text among {CANDIDATES:,} of its length finds "
            f"it{how} in {cases}",
        )

    @classmethod
    def of_sentences(cls, found: float | None, high: float | None = None) -> LinkageFigures:
        """Build the linkage figures for texts that are replaced by sentences of a public sentence
        bank, which discloses nothing of the texts' shape.

        Args:
            found: share that the best adversary identified; None if nothing was measured.
            high: upper end of the 95 % interval of the share, given if only few texts were
                measured.
        """
        if found is None:
            return cls(candidates=None, at=[], sentence=SENTENCES_NOT_MEASURED)
        interval = "" if high is None else f"; 95 % interval up to {_of_100(high)}"
        at = LinkageAt(
            words=PIECE, found=round(found, 4), structure=round(1 / CANDIDATES, 4), naive=None
        )
        return cls(
            candidates=CANDIDATES,
            at=[at],
            sentence=f"whoever has the original text among {CANDIDATES:,} of its length finds it "
            f"in {_of_100(found)} of 100 cases (one output of one text, among public texts of up "
            f"to {PIECE} words{interval}); outputs of several columns of a row, or of several "
            "texts of a person, reveal more than one output",
        )

    @property
    def largest(self) -> float | None:
        """Largest share of identified texts over all text lengths; None if nothing was measured."""
        return max((figure.found for figure in self.at), default=None)


def _of_100(share: float) -> str:
    if 0 < share < 0.01:
        return "fewer than 1"
    return f"{100 * share:.0f}"
