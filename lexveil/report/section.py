"""What a section of the report is: what it shows, the words around it, and the figures and files it
adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lexveil.report.data import ReportData
from lexveil.report.table import CsvFile


def nothing(_: ReportData) -> Mapping[str, Any]:
    """Default of what a section may leave out."""
    return {}


@dataclass(frozen=True, slots=True)
class PageSection:
    """One section of the page.

    Attributes:
        template: the file with its HTML; it has the macros ``render_table`` and ``render_chart``,
            the names of ``view``, and ``params``.
        title: its entry in the navigation.
        heading: above it.
        view: tables, charts and plain values, by the names that the template uses.
        files: CSV files beside the page, by file name.
    """

    template: str
    title: str
    heading: str
    view: Callable[[ReportData], Mapping[str, Any]]
    files: Callable[[ReportData], Mapping[str, CsvFile]] = nothing

    @property
    def name(self) -> str:
        """Its id, unique on the page."""
        return self.template.partition(".")[0].replace("_", "-")
