"""Definition of a report section: its view function, its template, its headings and its CSV
files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lexveil.lab.report.data import ReportData
from lexveil.lab.report.table import CsvFile


def nothing(_: ReportData) -> Mapping[str, Any]:
    """Return an empty mapping of files: the default for a section without CSV files."""
    return {}


@dataclass(frozen=True, slots=True)
class PageSection:
    """One section of the report page.

    Attributes:
        template: the file with the HTML of the section; it can use the macros ``render_table`` and
            ``render_chart``, the names of ``view``, and ``params``.
        title: name of the section in the navigation.
        heading: heading above the section.
        view: returns tables, charts and plain values, by the names that the template uses.
        files: returns the CSV files beside the page, by file name.
    """

    template: str
    title: str
    heading: str
    view: Callable[[ReportData], Mapping[str, Any]]
    files: Callable[[ReportData], Mapping[str, CsvFile]] = nothing

    @property
    def name(self) -> str:
        """Id of the section, unique on the page."""
        return self.template.partition(".")[0].replace("_", "-")
