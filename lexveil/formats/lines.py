"""Formats of which a row is text: lines that are read with all faults named, and written compressed
as they were.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from lexveil.errors import RequestError
from lexveil.formats.base import Format, Formulas, InputTable, Source, Writer
from lexveil.formats.chunks import Chunk, Texts
from lexveil.formats.compression import MAGIC, compressed

if TYPE_CHECKING:
    from lexveil.types import Flags
from collections.abc import Iterable
from typing import Any

from lexveil.formats.base import InputRow, TableRequest
from lexveil.formats.messages import no_documents

# bytes; what is longer is not one document, and would have to fit into memory
LINE_LIMIT = 16 * 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineFormat(Format):
    """A format of text files."""

    def header(self, table: InputTable) -> str:  # noqa: ARG002
        """What is before the first row."""
        return ""

    @abstractmethod
    def encode(self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter) -> str:
        """The chosen rows of a chunk, with other texts."""

    def writer(  # noqa: D102
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> Writer:
        return LineWriter(self, table, columns, out, formulas)


class LineWriter(Writer):
    """Writes a text file, compressed as the source was."""

    def __init__(
        self,
        form: LineFormat,
        table: InputTable,
        columns: Sequence[str],
        out: Path | IO[bytes],
        formulas: Formulas,
    ) -> None:
        super().__init__(table, columns, formulas)
        self.format, self.header = form, form.header(table)
        stream: IO[bytes] = (
            self.files.enter_context(out.open("wb")) if isinstance(out, Path) else out
        )
        self.stream = compressed(stream, table.source.compression, self.files)

    def write(self, chunk: Chunk, texts: Texts, keep: Flags) -> None:
        """Write the chosen rows."""
        content = self.format.encode(chunk, texts, keep.nonzero()[0].tolist(), self)
        self.n_rows += int(keep.sum())
        if self.header:
            self.stream.write(self.header.encode("utf-8"))
        self.stream.write(content.encode("utf-8"))
        self.header = ""


def read_lines(stream: IO[bytes], source: Source, *, keeps_mark: bool = False) -> Iterator[str]:
    """The lines of a text file, line ends included.

    Args:
        keeps_mark: leave a byte order mark at the beginning of the first line.

    Raises:
        RequestError: naming file and line: not UTF-8, too long, or not readable.
    """
    where = source.shown
    for number in itertools.count(1):
        try:
            raw = stream.readline(LINE_LIMIT + 1)
        except OSError as error:
            raise RequestError(f"{where}: {_damage(error, source.compression, number)}") from None
        if not raw:
            return
        if number == 1:
            for ending, magic in MAGIC.items():
                if raw.startswith(magic):
                    raise RequestError(
                        f"{where}: compressed; give it a name that ends in .{ending}"
                    )
            raw = raw if keeps_mark else raw.removeprefix(BYTE_ORDER_MARK)
        if len(raw) > LINE_LIMIT:
            raise RequestError(
                f"{where}, line {number}: longer than {LINE_LIMIT // 2**20} MiB; divide it"
            )
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RequestError(
                f"{where}, line {number}: not UTF-8 at byte {error.start + 1}; convert it"
            ) from None


def _damage(error: OSError, compression: str, number: int) -> str:
    """What is wrong with a file of which line ``number`` could not be read."""
    if not compression or error.errno is not None:
        return f"cannot be read after line {number - 1} ({error.strerror})"
    if "Truncated" in str(error):
        return f"the .{compression} file is truncated after line {number - 1}; copy it again"
    after = (
        f"damaged after line {number - 1}"
        if number > 1
        else f"not a .{compression} file, or a damaged one"
    )
    return f"{after}; copy it again, or drop .{compression} from the name of a plain file"


class PlainText(LineFormat):
    """Texts, one per line. A text with line breaks of its own needs another format."""

    name = "txt"
    title = "Plain text"
    endings = ("txt",)
    has_columns = False

    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:  # noqa: D102
        if len(request.texts) > 1 or request.subject is not None:
            raise RequestError(
                f"{source.shown}: a text file has no columns; name neither texts nor subjects"
            )
        column = request.texts[0] if request.texts else "text"
        return InputTable(
            source, [column], _rows(read_lines(stream, source), column, request.keeps_blanks)
        )

    def chunks(  # noqa: D102
        self, table: InputTable, request: TableRequest, for_writing: bool
    ) -> Iterator[Chunk]:
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

    def rest(self, row: InputRow, table: InputTable, request: TableRequest) -> Any:  # noqa: ARG002, D102
        text = row.values[table.columns[0]]
        return row.raw if text is None else row.raw[len(str(text)) :]

    def encode(self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter) -> str:  # noqa: ARG002, D102
        return "".join([(texts[row][0] or "") + chunk.rest[row] for row in rows])


def _rows(lines: Iterable[str], column: str, keeps_blanks: bool) -> Iterator[InputRow]:
    """The lines; those that are blank as null, or left out."""
    number = 0
    for line_number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.strip() or keeps_blanks:
            number += 1
            yield InputRow(number, line_number, {column: text if text.strip() else None}, line)
