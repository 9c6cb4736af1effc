"""Formats with a header and delimited fields, such as CSV and TSV. A field that is not rewritten
keeps its bytes, including its quotes.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import IO, Any, ClassVar, NamedTuple

from lexveil.base.errors import RequestError, option
from lexveil.io.formats import lines
from lexveil.io.formats.base import InputRow, InputTable, Source, TableRequest
from lexveil.io.formats.chunks import Chunk, Texts
from lexveil.io.formats.lines import LineFormat, LineWriter, described, open_lines
from lexveil.io.formats.messages import no_documents, require_distinct

FORMULA = re.compile(r"[=+\-@\t\r]")  # first characters of formulas in spreadsheets
# Delimiters between fields, and their names in messages.
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
# First line of a file that tells Excel the delimiter.
EXCEL = re.compile(r"sep=([,;\t|])\r?\n?")
# number of characters to read for the choice of the delimiter, if two delimiters could split the
# header
LOOKED_AT = 2**16


class Layout(NamedTuple):
    """Delimiter, quoting and header of a delimited file.

    Attributes:
        delimiter: the character between fields.
        has_quotes: whether quotes are part of the syntax, not of fields.
        header: the lines before the first row.
        end: line end of the file.
    """

    delimiter: str
    has_quotes: bool
    header: str
    end: str


class Delimited(LineFormat):
    """Base class of the delimited formats. A field is quoted only if the syntax requires it.

    Attributes:
        delimiter: the character between fields, unless the header shows another one.
        has_quotes: whether fields may be quoted.
    """

    delimiter: ClassVar[str]
    has_quotes: ClassVar[bool] = True

    def table(  # noqa: D102
        self, stream: IO[bytes], source: Source, request: TableRequest
    ) -> InputTable:
        where = source.shown
        text = open_lines(stream, source)
        first, content = _looked_at(text.lines)
        excel = EXCEL.fullmatch(first[0]) if first else None
        preamble = "" if excel is None else first[0]
        sample = first if excel is None else first[1:]
        said = source.delimiter or (excel[1] if excel else None)
        delimiter = said or self._delimiter(sample, where, request)
        has_quotes = self.has_quotes or delimiter != self.delimiter
        recorded = _Recorded(itertools.islice(content, bool(preamble), None))
        records = _records(recorded, _options(delimiter, has_quotes), where, bool(preamble))
        _, header, raw = next(records, (0, [], ""))
        if not header:
            raise no_documents(where)
        require_distinct(header, f"{where}, line {1 + bool(preamble)}")
        end = "\r\n" if raw.endswith("\r\n") else "\n"
        complete = raw if raw.endswith("\n") else raw + end
        layout = Layout(delimiter, has_quotes, preamble + complete, end)
        rows = _rows(records, header, where, has_quotes)
        is_other = source.delimiter is None and delimiter != self.delimiter
        remarks = [f"with a {_name(delimiter)} between fields"] if is_other else []
        return described(InputTable(source, header, rows, layout), text, *remarks)

    def _delimiter(self, sample: Sequence[str], where: str, request: TableRequest) -> str:
        """Detect the delimiter from the header. Rows are read only if several delimiters could
        split the header, because rows are private.

        Raises:
            RequestError: if several delimiters are possible.
        """

        def counts(delimiter: str) -> list[int]:
            has_quotes = self.has_quotes or delimiter != self.delimiter
            return _counts(sample, delimiter, has_quotes)

        possible = [delimiter for delimiter in DELIMITERS if next(iter(counts(delimiter)), 0) > 1]
        if possible in ([], [self.delimiter]):
            return self.delimiter
        if self.delimiter not in possible and sample[0].strip("\r\n") in request.texts:
            return self.delimiter  # the name of a single column
        if len(possible) > 1:
            agreeing = [delimiter for delimiter in possible if len(set(counts(delimiter))) == 1]
            if not agreeing and self.delimiter in possible:
                return self.delimiter  # a later message names the first row that does not agree
            possible = agreeing or possible
        if len(possible) > 1:
            known = " or a ".join(_name(delimiter) for delimiter in possible)
            raise RequestError(
                f"{where}: a {known} could be the delimiter; name the delimiter by "
                f"{option('delimiter')}"
            )
        return possible[0]

    def rest(  # noqa: D102
        self,
        row: InputRow,
        table: InputTable,  # noqa: ARG002
        request: TableRequest,  # noqa: ARG002
    ) -> Any:
        return row.raw

    def header(self, table: InputTable) -> str:  # noqa: D102
        layout: Layout = table.layout
        return table.mark + layout.header

    def encode(  # noqa: D102
        self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter
    ) -> str:
        layout: Layout = writer.table.layout
        positions = [writer.table.columns.index(column) for column in writer.columns]
        every = [*texts]
        lines_out = list[str]()
        for written, row in enumerate(rows, writer.n_rows + 1):
            raw = chunk.rest[row]
            where = writer.table.source.location(chunk.places[row])
            content = raw.rstrip("\r\n")
            fields = _raw_fields(content, layout.delimiter, layout.has_quotes)
            for position, text in zip(positions, every[row], strict=True):
                cell = _cell(text or "", written, where, writer)
                if not layout.has_quotes:
                    _require_one_line(cell, layout, where)
                elif text is not None:
                    cell = _quoted(cell, fields[position], layout.delimiter)
                fields[position] = cell
            if fields == [""]:
                raise RequestError(
                    f"{where}: a rewritten text is empty, and a {self.title} file of one "
                    "column cannot hold an empty text; write CSV"
                )
            lines_out += (layout.delimiter.join(fields), raw[len(content) :] or layout.end)
        return "".join(lines_out)


class CommaSeparated(Delimited):
    """CSV files: a header, commas between fields, and quotes where the syntax requires them."""

    name = "csv"
    title = "CSV"
    endings = ("csv",)
    delimiter = ","


class TabSeparated(Delimited):
    """TSV files: a header, tabs between fields, and no quotes, as in GLUE and at IANA. TSV
    therefore cannot store every text.
    """

    name = "tsv"
    title = "TSV"
    endings = ("tsv",)
    delimiter = "\t"
    has_quotes = False


def _raw_fields(content: str, delimiter: str, has_quotes: bool) -> list[str]:
    """Split a valid record, without its line end, into fields. The fields keep their quotes."""
    if not has_quotes or '"' not in content:
        return content.split(delimiter)
    return _field(delimiter).findall(content)


@lru_cache
def _field(delimiter: str) -> re.Pattern[str]:
    mark = re.escape(delimiter)
    return re.compile(rf'(?:^|{mark})("[^"]*(?:""[^"]*)*"|[^{mark}]*)')


@lru_cache
def _special(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf'[{re.escape(delimiter)}"\r\n]')


def _quoted(text: str, raw: str, delimiter: str) -> str:
    """Format a rewritten text as a field. The quotes depend only on the text, with one exception:
    an empty text is quoted if the source field had characters, because some programs read an empty
    field as null.
    """
    if not text:
        return '""' if raw else ""
    if _special(delimiter).search(text) is None:
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def _require_one_line(text: str, layout: Layout, where: str) -> None:
    """Check that a text has neither a tab nor a line break, because a format without quotes cannot
    store them.

    Raises:
        RequestError: if the text has a tab or line break.
    """
    if _special(layout.delimiter).search(text.replace('"', "")):
        raise RequestError(
            f"{where}: a rewritten text contains a tab or a line break, which TSV cannot "
            "store; write CSV"
        )


def _name(delimiter: str) -> str:
    return DELIMITERS.get(delimiter, repr(delimiter))


def _options(delimiter: str, has_quotes: bool) -> dict[str, Any]:
    """Return the options for Python's module csv."""
    if has_quotes:
        return {"delimiter": delimiter}
    return {"delimiter": delimiter, "quoting": csv.QUOTE_NONE, "quotechar": None}


def _looked_at(content: Iterator[str]) -> tuple[list[str], Iterator[str]]:
    """Return the first lines of an iterator, and an iterator over all its lines."""
    first = list[str]()
    size = 0
    for line in content:
        first.append(line)
        size += len(line)
        if size >= LOOKED_AT:
            break
    return first, itertools.chain(first, content)


def _counts(sample: Sequence[str], delimiter: str, has_quotes: bool) -> list[int]:
    """Return the number of fields of the header and of each record in a sample of lines. A record
    that cannot be parsed has the number -1 and ends the list. The list is empty if the header has
    quotes inside fields.
    """
    raw = _raw_fields(sample[0], delimiter, has_quotes) if sample else []
    if has_quotes and any('"' in field and not field.startswith('"') for field in raw):
        return []
    csv.field_size_limit(lines.LINE_LIMIT)
    counts = list[int]()
    parser = csv.reader(sample, strict=True, **_options(delimiter, has_quotes))
    try:
        for fields in parser:
            if fields:
                counts.append(len(fields))
    except csv.Error:
        # The sample may end inside a record.
        is_cut = parser.line_num == len(sample) and sum(map(len, sample)) >= LOOKED_AT
        counts += [] if is_cut and counts else [-1]
    return counts


def _cell(text: str, row: int, where: str, writer: LineWriter) -> str:
    """Return a rewritten text as a cell of a delimited file. ``writer.formulas`` determines how
    texts that look like spreadsheet formulas are treated.
    """
    if not FORMULA.match(text):
        return text
    if writer.formulas == "refuse":
        raise RequestError(
            f"{where}: a rewritten text begins like a formula; {option('formulas')} quote "
            "escapes such texts"
        )
    writer.n_formulas += 1
    writer.first_formula = writer.first_formula or row
    return f"'{text}" if writer.formulas == "quote" else text


class _Recorded:
    """Iterator over lines that remembers the lines read since the last call of ``taken``."""

    def __init__(self, content: Iterable[str]) -> None:
        self.content, self.since = iter(content), list[str]()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self.content)
        self.since.append(line)
        return line

    def taken(self) -> str:
        """Return the lines read since the last call as one text, and forget them."""
        since, self.since = self.since, []
        return since[0] if len(since) == 1 else "".join(since)


def _records(
    content: _Recorded, options: dict[str, Any], where: str, n_before: int
) -> Iterator[tuple[int, list[str], str]]:
    """Yield the first line number, the fields and the raw text of each record."""
    csv.field_size_limit(lines.LINE_LIMIT)
    parser = csv.reader(content, strict=True, **options)
    # parser.line_num is the last line of a record, which may span several lines. The next record
    # begins one line later.
    while True:
        line = parser.line_num + n_before + 1
        try:
            fields = next(parser)
        except StopIteration:
            return
        except csv.Error as error:
            raise RequestError(
                f"{where}, line {line}: not valid CSV ({error}); correct quotes or line ends"
            ) from None
        raw = content.taken()
        if fields:
            yield line, fields, raw


def _rows(
    records: Iterator[tuple[int, list[str], str]], header: list[str], where: str, has_quotes: bool
) -> Iterator[InputRow]:
    for number, (line, fields, raw) in enumerate(records, 1):
        if len(fields) != len(header):
            way_out = "put texts into quotes" if has_quotes else "TSV has no quotes, so use CSV"
            raise RequestError(
                f"{where}, line {line}: the number of fields is {len(fields)}, but the header "
                f"has {len(header)}; {way_out}"
            )
        yield InputRow(number, line, dict(zip(header, fields, strict=True)), raw)
