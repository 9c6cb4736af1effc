"""Plain text: one document per line. Blank lines are no documents; written back, they stay where they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from lexveil.errors import RequestError, option
from lexveil.formats.base import Row, Source, Table, TableRequest
from lexveil.formats.chunks import Chunk, Texts
from lexveil.formats.lines import LineFormat, LineWriter, read_lines
from lexveil.formats.messages import no_documents
from lexveil.formats.registry import register


@register
class PlainText(LineFormat):
    """Texts, one per line. A text with line breaks of its own needs another format."""

    name = "txt"
    title = "Plain text"
    endings = ("txt",)
    rank = 4
    has_columns = False

    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> Table:  # noqa: D102
        if len(request.texts) > 1 or request.subject is not None:
            raise RequestError(
                f"{source.shown}: a text file has no columns; leave {option('text_column')} and "
                f"{option('subject_column')} out"
            )
        column = request.texts[0] if request.texts else "text"
        lines = read_lines(stream, source)
        return Table(source, [column], (_all_rows if request.keeps_blanks else _rows)(lines, column))

    def chunks(self, table: Table, request: TableRequest, for_writing: bool) -> Iterator[Chunk]:  # noqa: D102
        chunks = super().chunks(table, request, for_writing)
        blank: list[Chunk] = []  # until there is a text
        for chunk in chunks:
            blank.append(chunk)
            if any(texts[0] is not None for texts in chunk.texts):
                break
        else:
            raise no_documents(table.source.shown)
        yield from blank
        yield from chunks

    def rest(self, row: Row, table: Table, request: TableRequest) -> Any:  # noqa: ARG002, D102
        text = row.values[table.columns[0]]
        return row.raw if text is None else row.raw[len(str(text)) :]

    def encode(self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter) -> str:  # noqa: ARG002, D102
        return "".join([(texts[row][0] or "") + chunk.rest[row] for row in rows])


def _rows(lines: Iterable[str], column: str) -> Iterator[Row]:
    """The lines that are not blank."""
    texts = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    for row_number, (number, line) in enumerate(texts, 1):
        yield Row(row_number, number, {column: line.rstrip("\r\n")}, line)


def _all_rows(lines: Iterable[str], column: str) -> Iterator[Row]:
    """All lines, a blank one as null."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        yield Row(number, number, {column: text if text.strip() else None}, line)
