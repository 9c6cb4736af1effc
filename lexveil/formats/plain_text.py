"""Plain text: one document per line. Blank lines are no documents; written back, they stay where they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from lexveil.errors import RequestError
from lexveil.formats.base import Row, Source, Table, TableRequest
from lexveil.formats.chunks import Chunk, Texts
from lexveil.formats.lines import LineFormat, LineWriter, read_lines
from lexveil.formats.messages import no_documents


class PlainText(LineFormat):
    """Texts, one per line. A text with line breaks of its own needs another format."""

    name = "txt"
    title = "Plain text"
    endings = ("txt",)
    has_columns = False

    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> Table:  # noqa: D102
        if len(request.texts) > 1 or request.subject is not None:
            raise RequestError(f"{source.shown}: a text file has no columns; name neither texts nor subjects")
        column = request.texts[0] if request.texts else "text"
        return Table(source, [column], _rows(read_lines(stream, source), column, request.keeps_blanks))

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


def _rows(lines: Iterable[str], column: str, keeps_blanks: bool) -> Iterator[Row]:
    """The lines; those that are blank as null, or left out."""
    number = 0
    for line_number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.strip() or keeps_blanks:
            number += 1
            yield Row(number, line_number, {column: text if text.strip() else None}, line)
