"""TSV: a header, tabs, no quotes, as GLUE and IANA have it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from lexveil.errors import RequestError
from lexveil.formats.delimited import Delimited
from lexveil.formats.lines import LineWriter
from lexveil.formats.registry import register


@register
class TabSeparated(Delimited):
    """TSV. Without quotes there are texts that it cannot hold."""

    name = "tsv"
    title = "TSV"
    endings = ("tsv",)
    rank = 3
    delimiter = "\t"
    separator = "tab"

    def parser(self, lines: Iterator[str]) -> Any:  # noqa: D102
        return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)

    def joined(self, rows: Sequence[Sequence[str]], end: str) -> str:  # noqa: D102
        return "".join([self.delimiter.join(fields) + end for fields in rows])

    def check(self, fields: Sequence[str], position: int, writer: LineWriter, line: int) -> None:  # noqa: D102
        if any(mark in fields[position] for mark in "\t\n\r"):
            raise RequestError(
                f"{writer.table.source.location(line)}: a rewritten text holds a tab or line break, which TSV cannot; "
                "write CSV"
            )
        if fields == [""]:
            raise RequestError(
                f"{writer.table.source.location(line)}: nothing is left of a text, and a TSV of one column cannot hold "
                "that, its line being blank; write CSV"
            )
