"""A table: rows of raw values, and how each column is written. The page, its sorting and its CSV
all come from it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any
from urllib.parse import quote

from lexveil.levels import Level
from lexveil.report import formatting
from lexveil.report.formatting import MISSING, MeanSd

Row = Mapping[str, Any]  # raw values by the key of their column
CsvFile = tuple[Sequence[str], Iterable[Sequence[Any]]]  # header and rows


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: of its values in the rows, and its name in CSV.
        head: what the page calls it, with the unit if it has one.
        show: how a value is written on the page; as it is unless told, and then aligned to the
            left.
        group: a heading over neighbouring columns of the same group.
    """

    key: str
    head: str
    show: Callable[[Any], str] = str
    group: str = ""

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.show is not str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what is read, and what sorting compares."""

    text: str
    raw: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """One table; the first column names the row. A column of which no row has a value is left out.

    Attributes:
        name: a word for ids and file names, unique on the page.
        every: all columns that it may have.
        rows: None, or no value at all, stands for what is not known.
        n_quiet: how many of the last rows are drawn aside from the others, as what they are
            compared with.
    """

    name: str
    every: Sequence[Column]
    rows: Sequence[Row]
    n_quiet: int = 0

    @cached_property
    def columns(self) -> list[Column]:
        """Those of which a row has a value; all of a table without rows."""
        return [
            one
            for one in self.every
            if not self.rows or any(row.get(one.key) is not None for row in self.rows)
        ]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over columns and how many columns each spans; empty if no column has one."""
        groups = [
            (name, len(list(members)))
            for name, members in groupby(column.group for column in self.columns)
        ]
        return groups if any(name for name, _ in groups) else []

    @property
    def cells(self) -> list[list[Cell]]:
        """Rows as the page shows them."""
        return [
            [_cell(column, row.get(column.key)) for column in self.columns] for row in self.rows
        ]

    @property
    def csv(self) -> str:
        """Raw values as CSV below one header, a mean and its deviation in two columns; empty where
        there is none.
        """
        fields: dict[str, list[Any]] = {}
        for column in self.columns:
            values = fields[column.key] = [row.get(column.key) for row in self.rows]
            deviations = [value.sd if isinstance(value, MeanSd) else None for value in values]
            if any(sd is not None for sd in deviations):
                fields[f"{column.key}_sd"] = deviations
        return to_csv(list(fields), zip(*fields.values(), strict=True))

    @property
    def csv_uri(self) -> str:
        """The CSV inside a link, so that the page stays one file."""
        return "data:text/csv;charset=utf-8," + quote(self.csv)


def _cell(column: Column, value: Any) -> Cell:
    if value is None:
        return Cell(MISSING, "", column.numeric)
    return Cell(column.show(value), str(value), column.numeric)


RUN = (
    Column("mechanism", "Mechanism"),
    Column("strategy", "Strategy"),
    Column("epsilon", "Base ε", formatting.epsilon),
)


def of_run(key: tuple[str, str, float]) -> dict[str, object]:
    """What the columns ``RUN`` show of a run."""
    return dict(zip(("mechanism", "strategy", "epsilon"), key, strict=True))


def epsilon_columns(
    epsilons: Iterable[float],
    show: Callable[[Any], str],
    group: str = "Base ε",
    prefix: str = "epsilon",
) -> list[Column]:
    """A column for each base epsilon, and for each level of recovery; see ``epsilon_key``."""
    return [
        Column(epsilon_key(epsilon), formatting.percent(epsilon.share), show, "Level of recovery")
        if isinstance(epsilon, Level)
        else Column(epsilon_key(epsilon, prefix), formatting.epsilon(epsilon), show, group)
        for epsilon in epsilons
    ]


def epsilon_key(epsilon: float, prefix: str = "epsilon") -> str:
    """What a row calls a value at a base epsilon, or at a level."""
    return f"{'level' if isinstance(epsilon, Level) else prefix}_{epsilon:g}"


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV with line feeds; None becomes an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
