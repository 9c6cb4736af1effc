"""Linkage as records and commands say it: whoever has candidate texts, and finds the source again.

The figures were measured on public texts and ship; they follow from no source.
"""

from __future__ import annotations

from collections.abc import Sequence

from lexveil.accounting.results import Number, Result
from lexveil.protection import MeasuredLinkage

CANDIDATES = 1_000  # texts among which the source of an output was looked for
NOT_MEASURED = (
    "whoever has the original text among others is to be expected to find it again: how often was "
    "not measured for these settings"
)


class LinkageAt(Result):
    """How often texts of one length are found again; shares of 1.

    Attributes:
        words: Words of the text.
        found: By the reader that finds most: by structure, by words alone, or by the exact channel.
        structure: By what is disclosed whatever epsilon is: fates of tokens, and kept tokens.
        naive: By a reader who knows nothing of the method.
    """

    words: int
    found: Number
    structure: Number
    naive: Number


class LinkageFigures(Result):
    """How often whoever has the source of an output among other texts finds it, by public texts.

    Attributes:
        candidates: How many texts of like length there were, the source among them; null where
            nothing was measured.
        at: By length of the texts.
        sentence: The same for people.
    """

    candidates: int | None
    at: list[LinkageAt]
    sentence: str

    @classmethod
    def of(cls, figures: Sequence[MeasuredLinkage], *, at_level: bool) -> LinkageFigures:
        """Say measured figures.

        Args:
            figures: of one mechanism, strategy and level, by length; none if nothing was measured.
            at_level: the run is at this level; else only what does not depend on epsilon counts,
                the structure.
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

    @property
    def largest(self) -> float | None:
        """The largest share that is found, of any length; None where nothing was measured."""
        return max((figure.found for figure in self.at), default=None)


def _of_100(share: float) -> str:
    if 0 < share < 0.005:
        return "fewer than 1"
    return f"{100 * share:.0f}"
