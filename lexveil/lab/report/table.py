"""Tables of the report, made of rows of raw values and a format for each column. The HTML table,
its sorting and the CSV file come from the same object.
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

from lexveil.base.levels import MISSING, GridRun, NoiseSetting
from lexveil.lab.report import formatting
from lexveil.lab.report.formatting import MeanSd

Row = Mapping[str, Any]  # raw values by the key of their column
CsvFile = tuple[Sequence[str], Iterable[Sequence[Any]]]  # header and rows


@dataclass(frozen=True, slots=True)
class Column:
    """Description of one column of a table.

    Attributes:
        key: key of the values in the rows, and name of the column in CSV.
        head: heading on the page, with the unit if there is one.
        show: formats a value for the page. The default shows text as it is, aligned to the left.
        group: heading over neighbouring columns of the same group.
    """

    key: str
    head: str
    show: Callable[[Any], str] = str
    group: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the values of the column are numbers."""
        return self.show is not str


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell: the text that the page shows, and the raw value that sorting compares."""

    text: str
    raw: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """One table of the report; its first column names the row. Columns without any value are left
    out.

    Attributes:
        name: word for ids and file names, unique on the page.
        every: all columns that the table may have.
        rows: values by column key; a missing key or None means that the value is unknown.
        n_quiet: number of last rows that are set apart, because the other rows are compared with
            them.
    """

    name: str
    every: Sequence[Column]
    rows: Sequence[Row]
    n_quiet: int = 0

    @cached_property
    def columns(self) -> list[Column]:
        """The columns that have a value in some row; all columns if the table has no rows."""
        return [
            one
            for one in self.every
            if not self.rows or any(row.get(one.key) is not None for row in self.rows)
        ]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings over groups of columns, with the number of columns that each spans; empty if
        no column has a group.
        """
        groups = [
            (name, len(list(members)))
            for name, members in groupby(column.group for column in self.columns)
        ]
        return groups if any(name for name, _ in groups) else []

    @property
    def cells(self) -> list[list[Cell]]:
        """The cells of all rows, formatted for the page."""
        return [
            [_cell(column, row.get(column.key)) for column in self.columns] for row in self.rows
        ]

    @property
    def csv(self) -> str:
        """The raw values as CSV text with one header line. A mean and its deviation are two
        columns; a missing value is an empty field.
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
        """The table as CSV in a data URI, so that the page is one file."""
        return "data:text/csv;charset=utf-8," + quote(self.csv)


def _cell(column: Column, value: Any) -> Cell:
    if value is None:
        return Cell(MISSING, "", column.numeric)
    return Cell(column.show(value), str(value), column.numeric)


RUN = (
    Column("mechanism", "Mechanism"),
    Column("strategy", "Strategy"),
    Column("epsilon", "Base ε", formatting.noise),
)


def of_run(key: GridRun) -> dict[str, object]:
    """Return the values that identify a run, by the columns ``RUN`` of a table."""
    return dict(zip(("mechanism", "strategy", "epsilon"), key, strict=True))


def epsilon_columns(
    settings: Iterable[NoiseSetting],
    show: Callable[[Any], str],
    group: str = "Base ε",
    prefix: str = "epsilon",
) -> list[Column]:
    """Return a table column for each base epsilon and for each recovery level, with keys by
    ``epsilon_key``.
    """
    return [
        Column(
            epsilon_key(noise, prefix),
            noise.short,
            show,
            "Level of recovery" if noise.is_level else group,
        )
        for noise in settings
    ]


def epsilon_key(noise: NoiseSetting, prefix: str = "epsilon") -> str:
    """Return the column key of a value at a base epsilon, or at a recovery level."""
    return f"{'level' if noise.is_level else prefix}_{noise.number:g}"


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV text with line feeds; None becomes an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
