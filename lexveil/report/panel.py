"""A figure as the page shows it: under its heading, and with what it is drawn of as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from lexveil.report.figures import Series
from lexveil.report.table import Column, Table


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure.

    Attributes:
        title: its heading.
        svg: the image.
        data: what it is drawn of; its name becomes that of the CSV file.
    """

    title: str
    svg: Markup
    data: Table


def data(name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table that is only downloaded."""
    return Table(name, name, [Column(key, key) for key in header], rows)


def series_data(name: str, label: str, x: str, y: str, series: Sequence[Series]) -> Table:
    """The points of some lines.

    Args:
        label, x, y: what the columns are called.
    """
    rows = [(line.label, *point) for line in series for point in zip(line.x, line.y, strict=True)]
    return data(name, [label, x, y], rows)
