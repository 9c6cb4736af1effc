"""What a section of the report is: what it shows, the words around it, and the figures and files it adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.report.data import ReportData

CsvFile = tuple[Sequence[str], Sequence[Sequence[Any]]]  # header and rows


def nothing(_: ReportData) -> Mapping[str, Any]:
    """Default of what a section may leave out."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the page.

    Attributes:
        name: id of the section, unique on the page.
        title: its entry in the navigation.
        heading: above it.
        prose: Jinja source of its HTML, with the macros ``render_table`` and ``render_panel``, the names of ``view``
            and ``params``.
        view: tables, figures and plain values, by the names that ``prose`` uses.
        metrics: entries of metrics.json, by key.
        files: CSV files beside the page, by file name.
    """

    name: str
    title: str
    heading: str
    prose: str
    view: Callable[[ReportData], Mapping[str, Any]] = nothing
    metrics: Callable[[ReportData], Mapping[str, Any]] = nothing
    files: Callable[[ReportData], Mapping[str, CsvFile]] = nothing
