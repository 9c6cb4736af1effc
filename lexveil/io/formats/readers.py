"""Reading and writing of users' tables, in bounded memory. If a row has a fault, the error message
names file and row.

The text columns are replaced; everything else and its order is unchanged. In JSON the bytes between
texts stay as they are, including the notation of numbers. In CSV and TSV every other field keeps
its characters. In Parquet every column keeps its type.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.objects import ObjectPath
from lexveil.io.formats.base import Formulas, InputTable, Source, TableRequest, Writer
from lexveil.io.formats.chunks import Chunk
from lexveil.io.formats.compression import open_bytes
from lexveil.io.formats.delimited import Delimited
from lexveil.io.formats.messages import NoColumnError, is_a_value, is_path, no_documents, shown
from lexveil.io.formats.text_columns import USUAL, could_hold_texts

LOG = logger(__name__)

LOOKED_AT = 200  # number of rows to read in search of an index of pandas
USUAL_WITHIN = (USUAL, "content", "body")  # keys of nested data that usually contain texts
# number of characters from which a name is rather a text of a file without a header
SEVERAL_WORDS = 3


@contextmanager
def open_table(
    source: Source,
    text_column: str | None,
    others: Collection[str] | None = None,
    stream: IO[bytes] | None = None,
    tell: Callable[[str], object] | None = None,
) -> Iterator[InputTable]:
    """Open a table file, which must have at least one row and the column ``text_column``.

    Args:
        source: the file.
        text_column: the column of the texts; None requires no column.
        others: further columns to read, if reading fewer columns saves work (Parquet); None reads
            all columns.
        stream: the file's bytes if they are not at the source's path; closed at the end.
        tell: function that is called with a remark on how the file is read, as in ``Reader``.

    Raises:
        RequestError: if ``Format.table`` rejects the file, or if the column is missing.
    """
    request = TableRequest([] if text_column is None else [text_column], others=others)
    with open_bytes(source.path, source.compression, stream) as content:
        table = source.format.table(content, source, request)
        request.check(table)
        if tell is not None and table.remark:
            tell(table.remark)
        first = next(table.rows, None)
        if first is None:
            raise no_documents(source.shown)
        yield replace(table, rows=itertools.chain([first], table.rows))


def tell_dialect(remark: str) -> None:
    """Log a remark on how a file is read."""
    LOG.info(remark)


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Rows from standard input or from a database query, stored in a file.

    Attributes:
        reopen: function that opens the bytes again.
        descriptor: the descriptor of the file with the rows.
        engine: the database engine of the rows; None for rows of another source.
        kinds: the engine's type names of the columns whose Arrow types are less exact.
    """

    reopen: Callable[[], IO[bytes]]
    descriptor: int
    engine: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reader:
    """A table file that can be read more than once, and written back.

    Attributes:
        source: the file.
        text_columns: the columns to rewrite.
        subject_column: the column that names the subject of a row.
        spans_column: the column with the spans that a detector found in a row; it is not written
            back.
        spool: the rows, if they are not at the source's path.
        tell: function that is called once, when reading begins, with a remark on how the file is
            read, if its name does not tell.
        table: the table; known once reading has begun.

    Raises:
        RequestError: from ``chunks``, if a row has a fault; the message names the file and the
            first such row.
    """

    source: Source
    text_columns: Sequence[str]
    subject_column: str | None = None
    spans_column: str | None = None
    spool: SpooledRows | None = None
    tell: Callable[[str], object] | None = None
    table: InputTable = field(init=False)

    def __post_init__(self) -> None:
        self.text_columns = list(self.text_columns)

    def text_columns_by_name(self) -> list[str]:
        """Return the columns that could contain texts, judged by their types and names. If there is
        a column ``text``, return this column alone.

        Raises:
            NoColumnError: if no column could contain texts, or if the name of such a column does
                not look like a name.
        """
        self.text_columns = []
        with self._opened():
            columns = self.table.columns
            if USUAL in columns or not self.source.format.has_columns:
                return [USUAL]
            possible = self.source.format.text_columns(self.table)
            # A damaged file is reported before the header is judged, which may be no header.
            first = itertools.islice(self.table.rows, LOOKED_AT)
            numbered = [str(row.values.get("")).isdigit() for row in first]
            # pandas writes the number of a row in a first column without a name.
            is_indexed = columns[:1] == [""] and all(numbered)
        possible = [column for column in possible if not (is_indexed and column == "")]
        used = (self.subject_column, self.spans_column)
        text_columns = [
            column for column in possible if column not in used and could_hold_texts(column)
        ]
        is_row = any(len(column.split()) >= SEVERAL_WORDS for column in text_columns)
        if isinstance(self.source.format, Delimited):  # keys of JSON may be numbers
            is_row = is_row or any(map(is_a_value, columns[is_indexed:]))
        if not text_columns or is_row:
            # A row in place of a header would be published unchanged.
            problem = (
                "its first line looks like a row, not like a header"
                if is_row
                else "no column contains texts by its type and name"
            )
            raise NoColumnError(
                self.source.shown,
                USUAL,
                columns,
                f"{problem}; choose a column with {option('text_column')}{self._within()}",
            )
        return text_columns

    def _within(self) -> str:
        """Return the phrase of an error message that suggests a path to nested texts. The phrase is
        empty if there is no such path.
        """
        with self._opened():
            paths = self.source.format.nested_texts(self.table)
        last = {path: re.split(r"[.\[\]]+", path.rstrip("[]"))[-1] for path in paths}
        text_paths = [path for path in paths if is_path(path) and could_hold_texts(last[path])]
        text_paths.sort(key=lambda path: last[path] not in USUAL_WITHIN)
        return f", such as '{text_paths[0]}'" if text_paths else ""

    @property
    def size(self) -> int:
        """The number of bytes to read. For a compressed file, this is the compressed size."""
        return (
            self.source.path.stat().st_size
            if self.spool is None
            else os.fstat(self.spool.descriptor).st_size
        )

    def check(self) -> None:
        """Check that the file has the requested columns, by reading its beginning.

        Raises:
            RequestError: if the file cannot be read.
            NoColumnError: if a column is missing; the message names the first such column.
        """
        with self._opened():
            pass

    @property
    def request(self) -> TableRequest:
        """The columns to read, as a request to the format."""
        return TableRequest(
            self.text_columns, self.subject_column, keeps_blanks=True, spans=self.spans_column
        )

    @contextmanager
    def _opened(self) -> Iterator[TableRequest]:
        """Open the table, and begin to read from the first row."""
        request = self.request
        stream = self.spool.reopen() if self.spool else None
        with open_bytes(self.source.path, self.source.compression, stream) as content:
            self.table = self.source.format.table(content, self.source, request)
            if self.tell is not None and self.table.remark:
                self.tell(self.table.remark)
            self.tell = None
            request.check(self.table)
            yield request

    def chunks(self, for_writing: bool = True) -> Iterator[Chunk]:
        """Yield all rows of the table in chunks. With ``for_writing``, the chunks also have the
        data that only the writer needs.
        """
        with self._opened() as request:
            chunks = self.source.format.chunks(self.table, request, for_writing)
            first = next(chunks, None)
            if first is None:
                raise no_documents(self.source.shown)
            yield first
            yield from chunks


def open_writer(reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> Writer:
    """Return a writer that writes the chunks of ``reader`` to a file or an open stream. The reader
    must have begun to read.

    The writer takes one text for each column of ``TableRequest.rewritten``.
    """
    return reader.source.format.writer(reader.table, reader.request.rewritten, out, formulas)


def check_output(out: Path, source: Path | None, form: Source, source_file: Source | None) -> None:
    """Check that the output file can be written, before any work is done.

    Args:
        out: the file to write.
        source: the input, if it is a file.
        form: the input, with its format and compression.
        source_file: ``out``, with the format and compression that its name implies.

    Raises:
        RequestError: if ``out`` is the input or a link, exists and is not empty, has no folder, or
            has another ending than the input.
    """
    if source is not None and out.exists() and out.samefile(source):
        raise RequestError(
            f"{shown(out)}: the output would replace the input; give it another name"
        )
    if out.is_symlink():
        raise RequestError(
            f"{shown(out)}: the output is a link; remove it or name the file to write"
        )
    if out.is_dir():
        raise RequestError(f"{shown(out)}: the output is a folder; name the file to write")
    if out.exists() and out.stat().st_size:
        raise RequestError(
            f"{shown(out)}: the output exists already; remove it or choose another name"
        )
    require_folder(out.parent)
    if source_file is None or (source_file.format, source_file.compression) != (
        form.format,
        form.compression,
    ):
        raise RequestError(
            f"{shown(out)}: the output has the format of the input, so its name must end "
            "like the input's name"
        )


def require_folder(folder: Path) -> None:
    """Check that a folder to write into exists. In object storage the folder is created, which
    tests the right to write.

    Raises:
        RequestError: if the folder does not exist.
        OSError: if the folder cannot be created.
    """
    if isinstance(folder, ObjectPath):
        folder.mkdir()
    elif not folder.is_dir():
        raise RequestError(f"{shown(folder)}: there is no such folder; make it first")
