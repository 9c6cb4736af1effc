"""A table: rows of raw values, and how each column is written. The page, its sorting and its CSV all come from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import quote

from lexveil.report import formatting
from lexveil.report.formatting import MeanSd


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: its name in CSV.
        head: what the page calls it, with the unit if it has one.
        show: how a value is written on the page; plain text unless told, and then aligned to the left.
        group: a heading over neighbouring columns of the same group.
    """

    key: str
    head: str
    show: Callable[[Any], str] = formatting.plain
    group: str = ""

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.show is not formatting.plain


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what is read, and what sorting compares."""

    text: str
    raw: str
    numeric: bool


@dataclass(frozen=True, slots=True)
class Table:
    """One table; the first column names the row.

    Attributes:
        name: a word for ids and file names, unique on the page.
        caption: what it shows, in one sentence.
        rows: raw values, one per column; None where there is none.
        note: how to read it, below the table.
        quiet: places of the rows that are drawn aside from the others, as figures of somebody else.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]] = field(default_factory=list)
    note: str = ""
    quiet: frozenset[int] = frozenset()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over columns and how many columns each spans; empty if no column has one."""
        if not any(column.group for column in self.columns):
            return []
        return [(name, len(list(members))) for name, members in groupby(column.group for column in self.columns)]

    @property
    def starts(self) -> set[int]:
        """Columns at which a group starts."""
        names = [column.group for column in self.columns]
        return {i for i in range(1, len(names)) if names[i] and names[i] != names[i - 1]}

    @property
    def cells(self) -> list[list[Cell]]:
        """Rows as the page shows them."""
        return [
            [
                Cell(column.show(value), "" if value is None else str(value), column.numeric)
                for column, value in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    @property
    def csv(self) -> str:
        """Raw values as CSV below one header, a mean and its deviation in two columns; empty where there is none."""
        with_sd = [
            any(isinstance(row[place], MeanSd) and row[place].sd is not None for row in self.rows)
            for place in range(len(self.columns))
        ]
        header = [
            key
            for column, both in zip(self.columns, with_sd, strict=True)
            for key in ([column.key, f"{column.key}_sd"] if both else [column.key])
        ]
        rows = [
            [
                part
                for value, both in zip(row, with_sd, strict=True)
                for part in ([value, value.sd if isinstance(value, MeanSd) else None] if both else [value])
            ]
            for row in self.rows
        ]
        return to_csv(header, rows)

    @property
    def csv_uri(self) -> str:
        """The CSV inside a link, so that the page stays one file."""
        return "data:text/csv;charset=utf-8," + quote(self.csv)


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Write CSV with line feeds; None becomes an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
