"""What an association measure is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssociationMeasure:
    """A measure of how much words belong together.

    Attributes:
        name: in params.yaml: collocations.measures, and after ``min_`` its threshold.
        column: in the tables of collocations, with the unit if it has one.
        unit: of its values, for people; empty if they have none.
        summary: what it tells, in one line.
        source: who introduced it.
        bigram: SQL over doubles: xy, the count of the pair; x and y, those of its words; n, all tokens; expected, what
            xy would be if the words were independent; x_only, y_only and neither, the other cells of the 2 x 2 table.
            Columns of measures before it may be used.
        trigram: the same over xyz, x, y, z, n and expected.
        low, high: what its threshold may be.
        decimals: with which it is printed.
    """

    name: str
    column: str
    unit: str
    summary: str
    source: str
    bigram: str
    trigram: str
    low: float
    high: float
    decimals: int = 2

    @property
    def threshold(self) -> str:
        """Its threshold in params.yaml: collocations."""
        return f"min_{self.name}"
