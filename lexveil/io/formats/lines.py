"""Text file formats with one text or record per line. If a line has a fault, the error names the
line. The output has the same compression as the source.
"""

from __future__ import annotations

import codecs
import io
import itertools
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lexveil.base.errors import RequestError, option
from lexveil.io.formats.base import (
    Format,
    Formulas,
    InputRow,
    InputTable,
    Source,
    TableRequest,
    Writer,
)
from lexveil.io.formats.chunks import Chunk, Texts
from lexveil.io.formats.compression import MAGIC, compressed
from lexveil.io.formats.messages import no_documents

if TYPE_CHECKING:
    from lexveil.base.types import Flags

# bytes; a longer line is not one document, and would have to fit into memory
LINE_LIMIT = 16 * 2**20
MARK = "\ufeff"  # a byte order mark, from which Excel recognizes UTF-8
# Byte order marks and the encodings that they mean. Longer marks come first.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# First bytes of files that are not text, with the kind of file and the remedy.
OTHER_KINDS = {
    b"PK\x03\x04": "a spreadsheet (xlsx, ods) or an archive; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet (xls); save the sheet as CSV",
    b"PAR1": "Parquet; give it a name that ends in .parquet",
    b"SQLite format 3\x00": "a database of SQLite; give its address, sqlite:///FILE",
}


class LineFormat(Format):
    """Base class of formats that are text files with one row per line."""

    def header(self, table: InputTable) -> str:
        """Return the text of the file before its first row, such as a header line."""
        return "" if table.encoding == "utf-8" else table.mark

    @abstractmethod
    def encode(self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter) -> str:
        """Return the file content for the chosen rows of a chunk, with ``texts`` in place of their
        texts.

        Args:
            rows: the numbers of the chosen rows in the chunk.
        """

    def writer(  # noqa: D102
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> Writer:
        return LineWriter(self, table, columns, out, formulas)


class LineWriter(Writer):
    """Writer of a text file, with the compression of the source."""

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
        """Write the rows of a chunk for which ``keep`` is true, with ``texts`` in place of their
        texts.
        """
        content = self.format.encode(chunk, texts, keep.nonzero()[0].tolist(), self)
        self.n_rows += int(keep.sum())
        # A character that an old encoding lacks becomes a question mark.
        self.stream.write((self.header + content).encode(self.table.encoding, "replace"))
        self.header = ""


@dataclass(frozen=True, slots=True)
class TextLines:
    """The decoded text of a file, line by line.

    Attributes:
        lines: the lines with their ends, without a byte order mark.
        encoding: the encoding, as Python calls it.
        mark: the byte order mark, if there is one.
    """

    lines: Iterator[str]
    encoding: str
    mark: str


def open_lines(stream: IO[bytes], source: Source) -> TextLines:
    """Open a file as decoded lines of text. The encoding is UTF-8, or the encoding that a byte
    order mark or the user names.

    Raises:
        RequestError: if the file is not text, has another encoding, has a line that is too long or
            is not readable; the message names file and line. The error may also occur while lines
            are read.
    """
    where = source.shown
    first = _raw_line(stream, source, 1)
    _require_text(first, where, source.encoding)
    encoding = source.encoding or "utf-8"
    by_mark = next((name for mark, name in MARKS.items() if first.startswith(mark)), None)
    if source.encoding is None or source.encoding in ("utf-16", "utf-32"):
        # Windows calls the encoding without a byte order mark by this name.
        encoding = by_mark or (encoding if encoding == "utf-8" else f"{encoding}-le")
    lines = (
        _utf8_lines(first, stream, source)
        if encoding == "utf-8"
        else _decoded_lines(first, stream, source, encoding)
    )
    head = next(lines, "")
    mark = MARK if head.startswith(MARK) else ""
    if "\x00" in head:
        raise RequestError(
            f"{where}, line 1: the line has NUL characters, as UTF-16 without a byte order "
            f"mark has; if it is UTF-16, add {option('encoding')} utf-16-le"
        )
    return TextLines(itertools.chain([head.removeprefix(mark)], lines), encoding, mark)


def _require_text(first: bytes, where: str, encoding: str | None) -> None:
    """Check that the first bytes of a file do not belong to another kind of file, such as an
    archive.
    """
    for ending, magic in MAGIC.items():
        if first.startswith(magic):
            raise RequestError(
                f"{where}: the file is compressed; give it a name that ends in .{ending}"
            )
    for magic, kind in OTHER_KINDS.items():
        if encoding is None and first.startswith(magic):
            raise RequestError(f"{where}: {kind}")


def _raw_line(stream: IO[bytes], source: Source, number: int) -> bytes:
    try:
        raw = stream.readline(LINE_LIMIT + 1)
    except OSError as error:
        raise RequestError(
            f"{source.shown}: {_damage(error, source.compression, number)}"
        ) from None
    if len(raw) > LINE_LIMIT:
        raise _too_long(source.shown, number)
    return raw


def _too_long(where: str, number: int) -> RequestError:
    return RequestError(
        f"{where}, line {number}: the line is longer than {LINE_LIMIT // 2**20} MiB; divide it"
    )


def _utf8_lines(first: bytes, stream: IO[bytes], source: Source) -> Iterator[str]:
    raw = first
    for number in itertools.count(1):
        if not raw:
            return
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RequestError(
                f"{source.shown}, line {number}: the text is not UTF-8 at byte {error.start + 1}; "
                f"convert the file, or name its encoding with {option('encoding')}"
            ) from None
        raw = _raw_line(stream, source, number + 1)


def _decoded_lines(first: bytes, stream: IO[bytes], source: Source, encoding: str) -> Iterator[str]:
    whole = io.BufferedReader(_Joined(first, stream), 2**17)
    text = io.TextIOWrapper(whole, encoding, newline="\n")
    for number in itertools.count(1):
        try:
            line = text.readline(LINE_LIMIT + 1)
        except OSError as error:
            problem = _damage(error, source.compression, number)
            raise RequestError(f"{source.shown}: {problem}") from None
        except UnicodeError:
            raise RequestError(
                f"{source.shown}: not {encoding} after line {number - 1}; convert it, or name its "
                f"encoding with {option('encoding')}"
            ) from None
        if not line:
            return
        if len(line) > LINE_LIMIT:
            raise _too_long(source.shown, number)
        yield line


class _Joined(io.RawIOBase):
    """Stream that returns bytes that were read already, followed by the rest of another stream."""

    def __init__(self, first: bytes, stream: IO[bytes]) -> None:
        self.first = first
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        content = self.first[: len(view)] or self.stream.read(len(view))
        self.first = self.first[len(content) :]
        view[: len(content)] = content
        return len(content)


def _damage(error: OSError, compression: str, number: int) -> str:
    """Return a message about a damaged file whose line ``number`` could not be read."""
    if not compression or error.errno is not None:
        return f"the file cannot be read after line {number - 1} ({error.strerror})"
    if "Truncated" in str(error):
        return f"the .{compression} file is truncated after line {number - 1}; copy it again"
    after = (
        f"the file is damaged after line {number - 1}"
        if number > 1
        else f"the file is not a .{compression} file, or it is damaged"
    )
    return f"{after}; copy it again, or remove .{compression} from the name of an uncompressed file"


def described(table: InputTable, text: TextLines, *remarks: str) -> InputTable:
    """Return a table with a remark on how its file is read, such as the encoding.

    Args:
        remarks: further facts about how the file is read, if its name does not tell them.
    """
    said = [*remarks]
    if text.encoding != "utf-8" and table.source.encoding is None:
        said.append(f"as {text.encoding[:6].upper()}")
    remark = ""
    if said:
        remark = f"{table.source.shown}: read {' and '.join(said)}"
    return replace(table, encoding=text.encoding, mark=text.mark, remark=remark)


class PlainText(LineFormat):
    """The format of plain text files, with one text per line. A text with line breaks needs another
    format.
    """

    name = "txt"
    title = "Plain text"
    endings = ("txt",)
    has_columns = False

    def table(  # noqa: D102
        self, stream: IO[bytes], source: Source, request: TableRequest
    ) -> InputTable:
        if len(request.texts) > 1 or request.subject is not None:
            raise RequestError(
                f"{source.shown}: a text file has no columns; do not name a column of texts "
                "or subjects"
            )
        column = request.texts[0] if request.texts else "text"
        text = open_lines(stream, source)
        rows = _rows(text.lines, column, request.keeps_blanks)
        return described(InputTable(source, [column], rows), text)

    def chunks(  # noqa: D102
        self, table: InputTable, request: TableRequest, for_writing: bool
    ) -> Iterator[Chunk]:
        chunks = super().chunks(table, request, for_writing)
        blank: list[Chunk] = []  # until a line has a text
        for chunk in chunks:
            blank.append(chunk)
            if any(texts[0] is not None for texts in chunk.texts):
                break
        else:
            raise no_documents(table.source.shown)
        yield from blank
        yield from chunks

    def rest(  # noqa: D102
        self,
        row: InputRow,
        table: InputTable,
        request: TableRequest,  # noqa: ARG002
    ) -> Any:
        text = row.values[table.columns[0]]
        return row.raw if text is None else row.raw[len(str(text)) :]

    def encode(  # noqa: D102
        self,
        chunk: Chunk,
        texts: Texts,
        rows: Sequence[int],
        writer: LineWriter,  # noqa: ARG002
    ) -> str:
        return "".join([(texts[row][0] or "") + chunk.rest[row] for row in rows])


def _rows(lines: Iterable[str], column: str, keeps_blanks: bool) -> Iterator[InputRow]:
    """Yield the lines of a file as rows. A blank line becomes a row with null if ``keeps_blanks``
    is true, and is skipped otherwise.
    """
    number = 0
    for line_number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.strip() or keeps_blanks:
            number += 1
            yield InputRow(number, line_number, {column: text if text.strip() else None}, line)
