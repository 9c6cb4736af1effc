"""Formats with a header and fields between separators; a field that is not rewritten keeps its
characters.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import IO, Any, ClassVar, NamedTuple

from lexveil.errors import RequestError, option
from lexveil.formats import lines
from lexveil.formats.base import InputRow, InputTable, Source, TableRequest
from lexveil.formats.chunks import Chunk, Texts
from lexveil.formats.lines import LineFormat, LineWriter, read_lines
from lexveil.formats.messages import no_documents, require_distinct

FORMULA = re.compile(r"[=+\-@\t\r]")  # a spreadsheet takes a cell that begins so for a formula


MARK = "\ufeff"  # a byte order mark, by which Excel knows UTF-8


class Layout(NamedTuple):
    """What of a file is no field: a byte order mark or nothing, and the end of a line."""

    mark: str
    end: str


class Delimited(LineFormat):
    """Fields are quoted where needed.

    Attributes:
        separator: the name of what separates fields.
        dialect: the options of the module csv.
    """

    separator: ClassVar[str]
    dialect: ClassVar[dict[str, Any]]

    def joined(self, rows: Sequence[Sequence[str]], end: str) -> str:
        """Rows as text."""
        buffer = StringIO()
        csv.writer(buffer, lineterminator=end, **self.dialect).writerows(rows)
        return buffer.getvalue()

    def check(self, fields: Sequence[str], position: int, where: str) -> None:
        """See that a row with a rewritten field at ``position`` can be written.

        Raises:
            RequestError: if it cannot.
        """

    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:  # noqa: D102
        where = source.shown
        content = read_lines(stream, source, keeps_mark=True)
        head = next(content, "")
        layout = Layout(
            MARK if head.startswith(MARK) else "", "\r\n" if head.endswith("\r\n") else "\n"
        )
        csv.field_size_limit(lines.LINE_LIMIT)
        parser = csv.reader(
            itertools.chain([head.removeprefix(MARK)], content), strict=True, **self.dialect
        )
        records = _records(parser, where)
        header = next(records, (0, []))[1]
        if not header:
            raise no_documents(where)
        if len(header) == 1 and ";" in header[0] and header[0] not in request.texts:
            raise RequestError(
                f"{where}: its first line has semicolons where {self.title} has a "
                f"{self.separator}; save it with a "
                f"{self.separator} between fields"
            )
        if any("\x00" in column for column in header):
            raise RequestError(
                f"{where}, line 1: a column's name holds a NUL character; convert UTF-16 to UTF-8"
            )
        require_distinct(header, f"{where}, line 1")
        return InputTable(source, header, _rows(records, header, where), layout)

    def rest(self, row: InputRow, table: InputTable, request: TableRequest) -> Any:  # noqa: ARG002, D102
        return list(row.values.values())

    def header(self, table: InputTable) -> str:  # noqa: D102
        layout: Layout = table.layout
        return layout.mark + self.joined([table.columns], layout.end)

    def encode(self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter) -> str:  # noqa: D102
        positions = [writer.table.columns.index(column) for column in writer.columns]
        for written, row in enumerate(rows, writer.n_rows + 1):
            fields, where = chunk.rest[row], writer.table.source.location(chunk.places[row])
            for position, text in zip(positions, texts[row], strict=True):
                fields[position] = _cell(text or "", written, where, writer)
                self.check(fields, position, where)
        return self.joined([chunk.rest[row] for row in rows], writer.table.layout.end)


class CommaSeparated(Delimited):
    """CSV: a header, commas, quotes where needed."""

    name = "csv"
    title = "CSV"
    endings = ("csv",)
    separator = "comma"
    dialect: ClassVar = {"delimiter": ","}


class TabSeparated(Delimited):
    """TSV: a header, tabs, no quotes, as GLUE and IANA have it; so there are texts that it cannot
    hold.
    """

    name = "tsv"
    title = "TSV"
    endings = ("tsv",)
    separator = "tab"
    dialect: ClassVar = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}

    def check(self, fields: Sequence[str], position: int, where: str) -> None:  # noqa: D102
        if any(mark in fields[position] for mark in "\t\n\r"):
            raise RequestError(
                f"{where}: a rewritten text holds a tab or line break, which TSV cannot; write CSV"
            )
        if fields == [""]:
            raise RequestError(
                f"{where}: nothing is left of a text, which a TSV of one column cannot hold; "
                "write CSV"
            )


def _cell(text: str, row: int, where: str, writer: LineWriter) -> str:
    """A rewritten text as a cell."""
    if not FORMULA.match(text):
        return text
    if writer.formulas == "refuse":
        raise RequestError(
            f"{where}: a rewritten text begins like a formula; {option('formulas')} quote "
            "escapes such"
        )
    writer.n_formulas += 1
    writer.first_formula = writer.first_formula or row
    return f"'{text}" if writer.formulas == "quote" else text


def _records(parser: Any, where: str) -> Iterator[tuple[int, list[str]]]:
    """The first line and the fields of each record."""
    # parser.line_num is the last line of a record, which may span several: the next one begins a
    # line later.
    while True:
        line = parser.line_num + 1
        try:
            fields = next(parser)
        except StopIteration:
            return
        except csv.Error as error:
            raise RequestError(
                f"{where}, line {line}: not valid CSV ({error}); correct quotes or line ends"
            ) from None
        if fields:
            yield line, fields


def _rows(
    records: Iterator[tuple[int, list[str]]], header: list[str], where: str
) -> Iterator[InputRow]:
    for number, (line, fields) in enumerate(records, 1):
        if len(fields) != len(header):
            raise RequestError(
                f"{where}, line {line}: {len(fields)} fields, the header has {len(header)}; "
                "quote texts"
            )
        yield InputRow(number, line, dict(zip(header, fields, strict=True)))
