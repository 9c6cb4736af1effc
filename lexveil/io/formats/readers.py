"""Reading users' tables and writing them back, in bounded memory; a fault is named by file and row.

The text columns are replaced, everything else and its order is unchanged: of JSON the bytes between
texts stay as they are, number for number; of CSV and TSV every other field keeps its characters; of
Parquet every column keeps its type.
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

LOOKED_AT = 200  # rows, to find an index of pandas
USUAL_WITHIN = (USUAL, "content", "body")  # keys of nested data that mostly hold texts
SEVERAL_WORDS = 3  # a name of so many is rather a text, of a file without a header


@contextmanager
def open_table(
    source: Source,
    text_column: str | None,
    others: Collection[str] | None = None,
    stream: IO[bytes] | None = None,
    tell: Callable[[str], object] | None = None,
) -> Iterator[InputTable]:
    """Open ``source``, which must have at least one row and the column ``text_column``.

    Args:
        source: the file.
        text_column: the column of the texts; None asks for none.
        others: further columns to read, where a choice saves work (Parquet); all of them if None.
        stream: the file's bytes if they are not at the source's path; closed at the end.
        tell: as of ``Reader``.

    Raises:
        RequestError: as ``Format.table``; without the column.
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
    """Tell the caller once how a file is read, if that differs from what the file's name says."""
    LOG.info(remark)


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Rows that do not lie at a source's path: standard input, or the rows of a query.

    Attributes:
        reopen: opens the bytes anew.
        descriptor: the descriptor of the file of the rows.
        engine: the database engine of the rows; None for rows of another source.
        kinds: the engine's names for the types of the columns, if the types of Arrow are less
            exact.
    """

    reopen: Callable[[], IO[bytes]]
    descriptor: int
    engine: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reader:
    """A table that can be read more than once, and written back.

    Attributes:
        source: the file.
        text_columns: the columns to rewrite.
        subject_column: the column that names the subject of a row.
        spans_column: the column that says what a detector found in a row; it is not written back.
        spool: the place of the bytes, if the bytes do not lie at the source's path.
        tell: function that is called once, when reading begins, with a remark if the file is not
            read as its name says.
        table: the table; known once reading has begun.

    Raises:
        RequestError: from ``chunks``, naming file and row of the first fault.
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
        """Return the columns that could hold texts by their types and names; the column ``text``
        alone, where there is one.

        Raises:
            NoColumnError: if there is none, or what could does not look like a column's name.
        """
        self.text_columns = []
        with self._opened():
            columns = self.table.columns
            if USUAL in columns or not self.source.format.has_columns:
                return [USUAL]
            possible = self.source.format.text_columns(self.table)
            # What is damaged there is said before a header is that may be none.
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
            # A row in place of a header would be published as it is.
            problem = (
                "its first line looks like a row and no header"
                if is_row
                else "none holds texts by its type and name"
            )
            raise NoColumnError(
                self.source.shown,
                USUAL,
                columns,
                f"{problem}; choose with {option('text_column')}{self._within()}",
            )
        return text_columns

    def _within(self) -> str:
        """Return the words by which a message suggests a path to texts within columns; empty if
        there is no such path.
        """
        with self._opened():
            paths = self.source.format.nested_texts(self.table)
        last = {path: re.split(r"[.\[\]]+", path.rstrip("[]"))[-1] for path in paths}
        text_paths = [path for path in paths if is_path(path) and could_hold_texts(last[path])]
        text_paths.sort(key=lambda path: last[path] not in USUAL_WITHIN)
        return f", such as '{text_paths[0]}'" if text_paths else ""

    @property
    def size(self) -> int:
        """The number of bytes to read, in compressed form for a compressed file."""
        return (
            self.source.path.stat().st_size
            if self.spool is None
            else os.fstat(self.spool.descriptor).st_size
        )

    def check(self) -> None:
        """Check that the requested columns are in the file, by reading its beginning.

        Raises:
            RequestError: if the file cannot be read.
            NoColumnError: naming the first column that is not there.
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
        """Begin to read, from the first row."""
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
        """Yield all rows, from the first. With ``for_writing``, yield also the data of the rows
        that only the writer needs.
        """
        with self._opened() as request:
            chunks = self.source.format.chunks(self.table, request, for_writing)
            first = next(chunks, None)
            if first is None:
                raise no_documents(self.source.shown)
            yield first
            yield from chunks


def open_writer(reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> Writer:
    """Return a writer of the chunks of ``reader``, to a file or an open stream; the reader must
    have begun to read.

    It takes a text for each column of ``TableRequest.rewritten``.
    """
    return reader.source.format.writer(reader.table, reader.request.rewritten, out, formulas)


def check_output(out: Path, source: Path | None, form: Source, source_file: Source | None) -> None:
    """Check that ``out`` can be written, before any work is done.

    Args:
        out: the file to write.
        source: the input, if it is a file.
        form: how the input is read.
        source_file: how the name of ``out`` says that it is to be read.

    Raises:
        RequestError: if it is the input, a link, exists and is not empty, has no folder, or has
            another ending.
    """
    if source is not None and out.exists() and out.samefile(source):
        raise RequestError(
            f"{shown(out)}: the output would replace the input; give it another name"
        )
    if out.is_symlink():
        raise RequestError(f"{shown(out)}: is a link; remove it or name the file to write")
    if out.is_dir():
        raise RequestError(f"{shown(out)}: is a folder; name the file to write")
    if out.exists() and out.stat().st_size:
        raise RequestError(f"{shown(out)}: exists already; remove it or choose another name")
    require_folder(out.parent)
    if source_file is None or (source_file.format, source_file.compression) != (
        form.format,
        form.compression,
    ):
        raise RequestError(
            f"{shown(out)}: the output has the input's form, so its name must end like the input's"
        )


def require_folder(folder: Path) -> None:
    """Check that there is a folder to write into; in object storage the folder is made, which tests
    the right to write.

    Raises:
        RequestError: if there is none.
        OSError: if the folder cannot be made.
    """
    if isinstance(folder, ObjectPath):
        folder.mkdir()
    elif not folder.is_dir():
        raise RequestError(f"{shown(folder)}: there is no such folder; make it first")
