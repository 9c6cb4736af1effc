"""Reading users' tables and writing them back, in bounded memory; a fault is named by file and row.

The text columns are replaced, everything else and its order is unchanged: of JSON the bytes between
texts stay as they are, number for number; of CSV and TSV every other field keeps its characters; of
Parquet every column keeps its type.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from lexveil.errors import RequestError, option
from lexveil.formats.base import Formulas, InputTable, Source, TableRequest, Writer
from lexveil.formats.chunks import Chunk
from lexveil.formats.compression import open_bytes
from lexveil.formats.delimited import Delimited
from lexveil.formats.messages import NoColumn, is_a_value, no_documents, shown
from lexveil.runtime.objects import ObjectPath

LOOKED_AT = 200  # rows, to find the column of texts
# on average: such a column has texts; a name of so many is rather a text, of a file without a
# header
SEVERAL_WORDS = 3


@contextmanager
def open_table(
    source: Source,
    text_column: str | None,
    others: Collection[str] | None = None,
    stream: IO[bytes] | None = None,
) -> Iterator[InputTable]:
    """Open ``source``, which must have at least one row and the column ``text_column``.

    Args:
        source: the file.
        text_column: the column of the texts; None asks for none.
        others: further columns to read, where a choice saves work (Parquet); all of them if None.
        stream: the file's bytes if they are not at the source's path; closed at the end.

    Raises:
        RequestError: as ``Format.table``; without the column.
    """
    request = TableRequest([] if text_column is None else [text_column], others=others)
    with open_bytes(source.path, source.compression, stream) as content:
        table = source.format.table(content, source, request)
        request.check(table)
        first = next(table.rows, None)
        if first is None:
            raise no_documents(source.shown)
        yield replace(table, rows=itertools.chain([first], table.rows))


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Rows that are not at a source's path: standard input, or those of a query.

    Attributes:
        reopen: opens the bytes anew.
        descriptor: of their file.
        engine: which database the rows are from, if they are.
        kinds: what it calls the types of columns, where Arrow's do not say it all.
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
        spool: where the bytes are, if they are not at the source's path.
        tell: is called once, when reading begins, with how the file is read where that is not what
            its name says.
        table: known once reading has begun.

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

    def find_text_column(self) -> list[str]:
        """Take the column ``text``, or else the one with the longest texts among the first rows.

        Returns:
            The other columns that have texts of several words.

        Raises:
            NoColumn: if none has, or what has does not look like a column's name.
        """
        self.text_columns = []
        with self._opened():
            columns, usual = self.table.columns, "text"
            if usual in columns or not self.source.format.has_columns:
                self.text_columns = [usual]
                return []
            n_words, is_indexed = dict.fromkeys(columns, 0.0), False
            for n_rows, row in enumerate(itertools.islice(self.table.rows, LOOKED_AT), start=1):
                # pandas writes the number of a row in a first column without a name.
                is_indexed = (
                    columns[:1] == [""]
                    and (is_indexed or n_rows == 1)
                    and (str(row.values.get("")).isdigit())
                )
                for column in columns:
                    value = row.values.get(column)
                    words = len(value.split()) if isinstance(value, str) else 0
                    n_words[column] += (words - n_words[column]) / n_rows
        ordered = sorted(columns, key=lambda column: -n_words[column])
        texts = [column for column in ordered if n_words[column] >= SEVERAL_WORDS]
        is_row = bool(texts) and len(texts[0].split()) >= SEVERAL_WORDS
        if isinstance(self.source.format, Delimited):  # keys of JSON may be numbers
            is_row = is_row or any(map(is_a_value, columns[is_indexed:]))
        if not texts or is_row:
            # A row in place of a header would be published as it is.
            problem = (
                "its first line looks like a row and no header"
                if texts
                else "none has texts of several words"
            )
            raise NoColumn(
                self.source.shown, usual, columns, f"{problem}; choose with {option('text_column')}"
            )
        self.text_columns = texts[:1]
        return texts[1:]

    @property
    def size(self) -> int:
        """Bytes to read, compressed as they are."""
        return (
            self.source.path.stat().st_size
            if self.spool is None
            else os.fstat(self.spool.descriptor).st_size
        )

    def check(self) -> None:
        """See that the columns are there, by the beginning of the file.

        Raises:
            RequestError: if the file cannot be read.
            NoColumn: naming the first that is not there.
        """
        with self._opened():
            pass

    @property
    def request(self) -> TableRequest:
        """What is read."""
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
        """All rows, from the first; ``for_writing`` with what else is in them."""
        with self._opened() as request:
            chunks = self.source.format.chunks(self.table, request, for_writing)
            first = next(chunks, None)
            if first is None:
                raise no_documents(self.source.shown)
            yield first
            yield from chunks


def open_writer(reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> Writer:
    """Return what writes the chunks of ``reader``, which must have begun to read, to a file or an
    open stream.

    It takes a text for each column of ``TableRequest.rewritten``.
    """
    return reader.source.format.writer(reader.table, reader.request.rewritten, out, formulas)


def check_output(out: Path, source: Path | None, form: Source, named: Source | None) -> None:
    """See that ``out`` can be written before any work is done.

    Args:
        out: the file to write.
        source: the input, if it is a file.
        form: how it is read.
        named: how the name of ``out`` says that it is to be read.

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
    if named is None or (named.format, named.compression) != (form.format, form.compression):
        raise RequestError(
            f"{shown(out)}: the output has the input's form, so its name must end like the input's"
        )


def require_folder(folder: Path) -> None:
    """See that there is a folder to write into; in object storage it is made, which asks for the
    right to write.

    Raises:
        RequestError: if there is none.
        OSError: if it cannot be made.
    """
    if isinstance(folder, ObjectPath):
        folder.mkdir()
    elif not folder.is_dir():
        raise RequestError(f"{shown(folder)}: there is no such folder; make it first")
