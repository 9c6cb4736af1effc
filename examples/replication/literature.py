"""The figures that the papers print, to stand beside those of this project.

Sources: CLMLDP (Meisenbacher et al. 2024), Tables 1 to 6 and 8; 1-Diffractor (Meisenbacher et al.
2024), Tables 1 to 4; TEM (Carvalho et al. 2023), the values that section 5.2 names of Figure 1.
published.csv has them as printed, with the slips (CLMLDP Table 8 gives MRPC the same budget at ε 10
and 15). Of CLMLDP Table 4 it has Yelp alone, without its clean baseline, and takes its four unnamed
blocks to be S1 to S4 in order. Figures 2 to 5 of 1-Diffractor and those of Vickrey print no
numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lexveil.errors import ParameterError
from lexveil.evaluation.metrics.attack import ADAPTIVE, GAIN, STATIC, STATIC_ACCURACY
from lexveil.evaluation.metrics.base import Score
from lexveil.evaluation.metrics.membership import MEMBERSHIP
from lexveil.evaluation.metrics.perplexity import PERPLEXITY
from lexveil.evaluation.metrics.similarity import COSINE
from lexveil.evaluation.metrics.utility import ON_CLEAN_MICRO, UTILITY, UTILITY_MICRO
from lexveil.report.formatting import MeanSd

PUBLISHED_CSV = Path(__file__).with_name("published.csv")
ANY = "any"  # a figure that does not depend on mechanism or strategy
NONE = "none"
_UNITS = {"percent": 100.0, "one": 1.0}

# What published.csv calls a score of ours.
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
        table: its number, or which figure a section talks of.
        dataset: by the name it has as a file; several that were averaged are joined by +.
        mechanism, strategy: by our names; none for clean texts.
        variant: which settings of the mechanism, where the paper tells several apart.
        epsilon: base epsilon; 0 for clean texts.
        unit: percent or one.
        value, sd: as printed, in that unit; sd is None where none is printed.
        model: the classifier, encoder or language model it was measured with.
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
        """The data sets it was averaged over."""
        return tuple(self.dataset.split("+"))

    @property
    def share(self) -> MeanSd:
        """Mean and deviation, percentages as shares of 1."""
        unit = _UNITS[self.unit]
        return MeanSd(self.value / unit, None if self.sd is None else self.sd / unit)

    @property
    def source(self) -> str:
        """Where it is printed, of what, and with which model."""
        where = f"Table {self.table}" if self.table.isdigit() else self.table
        return ", ".join(
            part
            for part in (f"{self.paper} {where}", self.variant, self.model)
            if part not in ("", NONE)
        )


@dataclass(frozen=True, slots=True)
class LiteratureRow:
    """The figures that belong in one row of a table of ours.

    Attributes:
        at: by base epsilon.
        clean: what the same table prints of clean texts.
    """

    mechanism: str
    strategy: str
    source: str
    at: Mapping[float, MeanSd]
    clean: MeanSd | None


def parse(text: str) -> list[Literature]:
    """Read published.csv.

    Raises:
        ParameterError: if a row lacks a value, or has one that cannot be.
    """
    found = []
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), 2):
        try:
            if row["unit"] not in _UNITS or not all(
                row[name] for name in row if name not in ("sd", "variant")
            ):
                raise ValueError
            found.append(
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
    return found


def beside(
    published: Iterable[Literature],
    datasets: Sequence[str],
    measures: Sequence[str],
    rows: Iterable[tuple[str, str]],
    epsilons: Sequence[float],
) -> list[LiteratureRow]:
    """What is printed of the same data sets, mechanisms and strategies at base epsilons that a
    table of ours has.

    Args:
        datasets: one, or those that were averaged, in any order.
        measures: names of published.csv that mean the same.
        rows: (mechanism, strategy) of the table; one of ANY matches what does not depend on them.
    """
    wanted = set(rows)
    own = [
        figure
        for figure in published
        if sorted(figure.datasets) == sorted(datasets) and figure.measure in measures
    ]
    clean = {
        (figure.paper, figure.table, figure.measure): figure.share
        for figure in own
        if figure.mechanism == NONE
    }
    found = []

    def key(one: Literature) -> tuple[str, str, str, str]:
        return one.mechanism, one.strategy, one.source, one.measure

    for (mechanism, strategy, source, _), members in groupby(sorted(own, key=key), key=key):
        some = list(members)
        at = {figure.epsilon: figure.share for figure in some if figure.epsilon in epsilons}
        if (mechanism, strategy) in wanted and at:
            first = some[0]
            found.append(
                LiteratureRow(
                    mechanism,
                    strategy,
                    source,
                    at,
                    clean.get((first.paper, first.table, first.measure)),
                )
            )
    return found


def groups(
    published: Iterable[Literature], measures: Sequence[str], datasets: Sequence[str]
) -> list[tuple[str, ...]]:
    """The sets of several data sets over which a measure is printed as one average, of those that
    are all there.
    """
    named = {
        figure.datasets
        for figure in published
        if figure.measure in measures and len(figure.datasets) > 1
    }
    return sorted(group for group in named if set(group) <= set(datasets))
