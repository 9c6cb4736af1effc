"""Figures that the papers print, for comparison with the figures of this project.

Sources: CLMLDP (Meisenbacher et al. 2024), Figure 1 and Tables 1 to 6 and 8; 1-Diffractor
(Meisenbacher et al. 2024), Tables 1 to 5 and the values that its text gives for Figures 4 and 6;
TEM (Carvalho et al. 2023), the values that section 5.2 gives for Figure 1; Vickrey (Xu et al.
2021), the values that section 4 gives for Figure 2. published.csv has the figures as printed, with
their errors (CLMLDP Table 8 gives MRPC the same budget at ε 10 and 15). Two copies of CLMLDP Table
4 differ: one has all figures of Yelp in four blocks without names; the other has the names of the
blocks (S1 to S4 in order), both baselines of the adversary, and the static attacker and relative
gain of Trustpilot. The utility and the adaptive attacker of Trustpilot, and the baselines of
utility, cannot be read in either copy. Other figures are drawings without numbers.

published_neighbours.csv has CLMLDP Table 7. The outputs of CLMLDP Table 9 and of 1-Diffractor
Tables 6 and 7 are texts of the papers and are not copied.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lexveil.base.errors import ParameterError
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE, GAIN, STATIC, STATIC_ACCURACY
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.membership import MEMBERSHIP
from lexveil.lab.evaluation.metrics.perplexity import PERPLEXITY
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import ON_CLEAN_MICRO, UTILITY, UTILITY_MICRO
from lexveil.lab.report.formatting import MeanSd

PUBLISHED_CSV = Path(__file__).with_name("published.csv")
NEIGHBOURS_CSV = Path(__file__).with_name("published_neighbours.csv")
ANY = "any"  # a figure that does not depend on mechanism or strategy
NONE = "none"
_UNITS = {"percent": 100.0, "one": 1.0}

# Name in published.csv of each score of the report.
MEASURES: Mapping[Score, tuple[str, ...]] = {
    UTILITY: ("utility_macro_f1",),
    UTILITY_MICRO: ("utility_micro_f1", "utility_accuracy"),
    ON_CLEAN_MICRO: ("utility_clean_accuracy",),
    STATIC: ("attack_static_macro_f1",),
    ADAPTIVE: ("attack_adaptive_macro_f1",),
    STATIC_ACCURACY: ("attack_static_accuracy",),
    GAIN: ("relative_gain",),
    COSINE: ("cosine",),
    PERPLEXITY: ("perplexity",),
    MEMBERSHIP: ("membership_auc",),
}


@dataclass(frozen=True, slots=True)
class Literature:
    """One printed figure.

    Attributes:
        paper: name of the paper.
        table: number of the table, or the figure that a section describes.
        dataset: name of the data set's file; the names of several averaged sets are joined by +.
        mechanism, strategy: names as in params.yaml; `none` for clean texts.
        variant: settings of the mechanism, if the paper reports several.
        epsilon: base epsilon; 0 for clean texts.
        measure: name of the measure.
        unit: percent or one.
        value, sd: as printed, in that unit; sd is None if none is printed.
        model: classifier, encoder or language model behind the figure.
    """

    paper: str
    table: str
    dataset: str
    mechanism: str
    strategy: str
    variant: str
    epsilon: float
    measure: str
    unit: str
    value: float
    sd: float | None
    model: str

    @property
    def datasets(self) -> tuple[str, ...]:
        """Data sets over which the figure is averaged."""
        return tuple(self.dataset.split("+"))

    @property
    def share(self) -> MeanSd:
        """Mean and standard deviation; percentages are converted to shares of 1."""
        unit = _UNITS[self.unit]
        return MeanSd(self.value / unit, None if self.sd is None else self.sd / unit)

    @property
    def place(self) -> str:
        """Table or figure in which the value is printed."""
        return f"Table {self.table}" if self.table.isdigit() else self.table


def parse(text: str) -> list[Literature]:
    """Parse the content of published.csv.

    Raises:
        ParameterError: if a row lacks a value, or has an invalid one.
    """
    figures = []
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), 2):
        try:
            if row["unit"] not in _UNITS or not all(
                row[name] for name in row if name not in ("sd", "variant")
            ):
                raise ValueError
            figures.append(
                Literature(
                    **{
                        name: row[name]
                        for name in Literature.__slots__
                        if name not in ("epsilon", "value", "sd")
                    },
                    epsilon=float(row["epsilon"]),
                    value=float(row["value"]),
                    sd=float(row["sd"]) if row["sd"] else None,
                )
            )
        except (KeyError, TypeError, ValueError):
            raise ParameterError(
                f"published.csv, line {line}: not a complete row; every column but sd and variant "
                "needs a value, unit is percent or one, and epsilon, value and sd are numbers"
            ) from None
    return figures


def published_figures() -> list[Literature]:
    """Return all printed figures."""
    return parse(PUBLISHED_CSV.read_text(encoding="utf-8"))


def published_neighbours() -> dict[str, list[str]]:
    """Return CLMLDP Table 7: the five nearest tokens of each of six tokens, nearest first."""
    neighbours: dict[str, list[str]] = {}
    with NEIGHBOURS_CSV.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            neighbours.setdefault(row["token"], []).append(row["neighbour"])
    return neighbours


def places(figures: Sequence[Literature], paper: str) -> list[str]:
    """Return the tables of a paper that have figures, in order."""
    return list(dict.fromkeys(figure.table for figure in figures if figure.paper == paper))
