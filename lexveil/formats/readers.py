"""Reading users' files: row by row, in bounded memory, every fault named by file and row and none by its text.

One record is one document. How each kind is read:

* JSON lines (.json, .jsonl, .ndjson): one object per line; blank lines are passed over.
* CSV: a header, commas, quotes where needed. TSV: a header, tabs, no quoting, as GLUE and IANA have it.
* Parquet: one row per document.
* txt: one document per line that is not blank. A text with line breaks of its own needs one of the other forms.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import itertools
import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.errors import RequestError
from lexveil.formats.input_files import Source, shown

LINE_LIMIT = 16 * 2**20  # bytes; what is longer is not one document, and would have to fit into memory
PARQUET_ROWS = 1024  # read at a time

# Text packs to a third or a tenth. What grows more than this, once it is large, was made to fill a memory or a disk.
RATIO_LIMIT = 200
RATIO_FROM = 64 * 2**20  # bytes unpacked; before that, any ratio

MARK = b"\xef\xbb\xbf"
MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")


class Row(NamedTuple):
    """One record: its number from 1, the line (Parquet: row) where it begins, and its values by column."""

    number: int
    line: int
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """An opened file: columns as its header, its schema or its first object has them; rows to go through once."""

    source: Source
    columns: list[str]
    rows: Iterator[Row]


def place(source: Source, line: int) -> str:
    """Where a row stands, for messages."""
    return f"{shown(source.path)}, {'row' if source.kind == 'parquet' else 'line'} {line}"


@contextmanager
def open_table(
    source: Source, text_column: str | None, wanted: Collection[str] | None = None, plain: IO[bytes] | None = None
) -> Iterator[Table]:
    """Open ``source``, which must have at least one row and the column ``text_column``.

    Args:
        source: the file.
        text_column: the column that holds the texts; None asks for none.
        wanted: columns to read beside ``text_column``, where that saves work (Parquet); all of them if None.
        plain: the file's bytes, where they do not lie at the source's path; closed at the end.

    Raises:
        RequestError: naming file and row: empty, cut short, damaged, not UTF-8, not of its kind, without the column.
            Faults further down are raised while the rows are read.
    """
    with opened(source, plain) as stream:
        if source.kind == "parquet":
            yield _checked(_parquet_table(stream, source, text_column, wanted), text_column)
        else:
            yield table_of(stream, source, text_column)


def table_of(stream: IO[bytes], source: Source, text_column: str | None) -> Table:
    """The same of a stream that is open already (standard input); ``source`` gives its kind and name."""
    where = shown(source.path)
    lines = text_lines(stream, where, source.packing)
    if source.kind == "json":
        rows = _json_rows(lines, where)
        first = next(rows, None)
        table = Table(source, list(first.values) if first else [], itertools.chain([first] if first else [], rows))
    elif source.kind == "txt":
        column = text_column or "text"
        table = Table(source, [column], _text_rows(lines, column))
    else:
        table = Table(source, *delimited(lines, where, "\t" if source.kind == "tsv" else ","))
    return _checked(table, text_column)


def opened(source: Source, plain: IO[bytes] | None = None) -> IO[bytes]:
    """The bytes that a file holds, unpacked.

    Raises:
        RequestError: if it cannot be read.
    """
    try:
        plain = plain or source.path.open("rb")
    except OSError as error:
        raise RequestError(f"{shown(source.path)}: cannot be read ({error.strerror})") from None
    return unpacked(plain, source) if source.packing else plain


def unpacked(plain: IO[bytes], source: Source) -> IO[bytes]:
    """What a packed file holds; closing it closes ``plain``, too.

    Raises:
        RequestError: while it is read, if it is cut short, damaged, or holds implausibly much (``RATIO_LIMIT``).
    """
    return io.BufferedReader(_Unpacked(plain, source), 2**17)


def unpacked_head(head: bytes, source: Source) -> bytes:
    """What the first bytes of a file hold, wherever they are cut off.

    Raises:
        RequestError: if they are not packed as the name says.
    """
    if not source.packing:
        return head
    pieces = []
    with unpacked(io.BytesIO(head), source) as stream:
        try:
            while piece := stream.read1(2**16):  # type: ignore[attr-defined]
                pieces.append(piece)
        except (EOFError, OSError, zlib.error):  # it ends in the midst of something
            pass
    if head and not pieces:
        raise RequestError(f"{shown(source.path)}: not a .{source.packing} file, or a damaged one")
    return b"".join(pieces)


class _Unpacked(io.RawIOBase):
    """The bytes of a packed file, counted beside those they come from."""

    def __init__(self, plain: IO[bytes], source: Source) -> None:
        self.plain, self.source = plain, source
        self.n_packed = self.n_unpacked = 0
        self.stream: Any = (
            gzip.GzipFile(fileobj=cast(IO[bytes], _Counted(self)), mode="rb")
            if source.packing == "gz"
            else pa.CompressedInputStream(pa.PythonFile(_Counted(self), mode="r"), "zstd")
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # One read of what is below: what comes before a fault is given, and the fault raised by the next call.
        n = int(self.stream.readinto1(buffer) if self.source.packing == "gz" else self.stream.readinto(buffer))
        self.n_unpacked += n
        if self.n_unpacked > RATIO_FROM and self.n_unpacked > RATIO_LIMIT * self.n_packed:
            raise RequestError(
                f"{shown(self.source.path)}: {self.n_unpacked // 2**20} MiB come out of {self.n_packed // 2**10} KiB, "
                f"more than {RATIO_LIMIT} times as much, and more would follow: not what packed text looks like. "
                "If it is, unpack it first"
            )
        return n

    def close(self) -> None:
        if not self.closed:
            # Arrow's stream holds what it reads from, which holds this: a circle that no collector of garbage sees.
            self.stream.close()
            self.stream = None
            self.plain.close()
        super().close()


class _Counted(io.RawIOBase):
    def __init__(self, owner: _Unpacked) -> None:
        self.owner = owner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self.owner.plain.read(len(buffer))
        buffer[: len(read)] = read
        self.owner.n_packed += len(read)
        return len(read)


def _checked(table: Table, text_column: str | None) -> Table:
    where = shown(table.source.path)
    first = next(table.rows, None)
    if text_column is not None and (first is not None or table.columns) and text_column not in table.columns:
        raise RequestError(
            f"{where}: there is no column {name(text_column)}; the columns are {names(table.columns)}; "
            "choose one with --text-column"
        )
    if first is None:
        raise no_documents(where)
    return Table(table.source, table.columns, itertools.chain([first], table.rows))


def no_documents(where: str) -> RequestError:
    """The error of a file in which there is nothing to read."""
    return RequestError(f"{where}: empty, there is no document in it; remove the file or fill it")


def name(column: str) -> str:
    """A column's name for messages. What does not look like one may be a text (a file without its header): hidden."""
    if not column:
        return "(no name)"
    return f"`{column}`" if re.fullmatch(r"[\w.:/-]{1,40}( [\w.:/-]{1,20}){0,2}", column) else "(not a name)"


def names(columns: Iterable[str]) -> str:
    """Several names; at most twenty."""
    listed = [name(column) for column in columns]
    more = f" and {len(listed) - 20} more" if len(listed) > 20 else ""
    hint = " (is the first line a header?)" if "(not a name)" in listed else ""
    return ", ".join(listed[:20]) + more + hint


def _damage(error: Exception, packing: str, number: int) -> str:
    """What is wrong with a file of which line ``number`` could not be read."""
    if isinstance(error, EOFError) or (packing and "Truncated" in str(error)):
        return f"the .{packing} file is cut short after line {number - 1}; copy it again"
    if isinstance(error, gzip.BadGzipFile | zlib.error) or (packing and error.errno is None):  # type: ignore[attr-defined]
        after = f"damaged after line {number - 1}" if number > 1 else f"not a .{packing} file, or a damaged one"
        return f"{after}; copy it again, or drop .{packing} from the name of a plain file"
    return f"cannot be read after line {number - 1} ({error.strerror})"  # type: ignore[attr-defined]


def text_lines(stream: IO[bytes], where: str, packing: str = "") -> Iterator[str]:
    """The lines of a text file, line ends included.

    Raises:
        RequestError: naming file and line: not UTF-8, too long, or not to be read.
    """
    for number in itertools.count(1):
        try:
            raw = stream.readline(LINE_LIMIT + 1)
        except (EOFError, zlib.error, OSError) as error:
            raise RequestError(f"{where}: {_damage(error, packing, number)}") from None
        if not raw:
            return
        if number == 1:
            for magic, found in MAGIC.items():
                if raw.startswith(magic):
                    raise RequestError(f"{where}: packed; give it a name that ends in .{found}")
            raw = raw.removeprefix(MARK)
        if len(raw) > LINE_LIMIT:
            raise RequestError(
                f"{where}, line {number}: longer than {LINE_LIMIT // 2**20} MiB; write one document per line"
            )
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RequestError(
                f"{where}, line {number}: not UTF-8 (byte {error.start + 1} of the line); "
                "convert the file, for example by iconv -f WINDOWS-1252 -t UTF-8"
            ) from None
        yield line


def _json_rows(lines: Iterable[str], where: str) -> Iterator[Row]:
    number = 0
    for at, line in enumerate(lines, 1):
        if not line.strip():
            continue
        number += 1
        yield Row(number, at, json_object(line, f"{where}, line {at}", number == 1))


def json_object(line: str, where: str, is_first: bool) -> dict[str, Any]:
    """The object that a line holds.

    Raises:
        RequestError: naming ``where``, if it holds anything else.
    """
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        hint = "a JSON array must become one object per line" if is_first and line.lstrip()[0] == "[" else None
        hint = hint or "each line must hold one whole object"
        raise RequestError(f"{where}: not valid JSON at character {error.pos + 1}; {hint}") from None
    except (ValueError, RecursionError):
        raise RequestError(f"{where}: a number too long or nested too deep; simplify it") from None
    if not isinstance(values, dict):
        raise RequestError(f"{where}: {_kind(values)}, not a JSON object; write one object per line")
    return values


def _text_rows(lines: Iterable[str], column: str) -> Iterator[Row]:
    kept = ((at, line.rstrip("\r\n")) for at, line in enumerate(lines, 1) if line.strip())
    for number, (at, line) in enumerate(kept, 1):
        yield Row(number, at, {column: line})


def delimited(lines: Iterator[str], where: str, delimiter: str) -> tuple[list[str], Iterator[Row]]:
    """The header of a CSV or TSV file and its rows.

    Raises:
        RequestError: naming file and line, if it is not valid, a column is there twice, or a row has other fields.
    """
    csv.field_size_limit(LINE_LIMIT)
    if delimiter == "\t":
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
    fields = _fields(reader, where)
    header = next(fields, (0, []))[1]
    for column in header:
        if "\x00" in column:
            raise RequestError(
                f"{where}, line 1: a column's name holds a NUL character; if the file is UTF-16, convert it, for "
                "example by iconv -f UTF-16 -t UTF-8"
            )
        if header.count(column) > 1:
            raise RequestError(f"{where}, line 1: the column {name(column)} stands there twice; rename one")
    return header, _delimited_rows(fields, header, where)


def _fields(reader: Any, where: str) -> Iterator[tuple[int, list[str]]]:
    # reader.line_num is the last line of a record, which may span several: the next one begins a line later.
    while True:
        at = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise RequestError(f"{where}, line {at}: not valid CSV ({error}); correct quotes or line ends") from None
        if fields:
            yield at, fields


def _delimited_rows(fields: Iterator[tuple[int, list[str]]], header: list[str], where: str) -> Iterator[Row]:
    for number, (at, values) in enumerate(fields, 1):
        if len(values) != len(header):
            raise RequestError(
                f"{where}, line {at}: {len(values)} fields where the header has {len(header)}; "
                "quote texts that hold the separator"
            )
        yield Row(number, at, dict(zip(header, values, strict=True)))


def open_parquet(stream: IO[bytes], source: Source) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        RequestError: if it is empty, damaged, or has a column twice.
    """
    where = shown(source.path)
    try:
        file = pq.ParquetFile(stream)
        columns = file.schema_arrow.names
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # the last one from names that are no UTF-8
        if stream.seek(0, io.SEEK_END) == 0:
            raise no_documents(where) from None
        raise RequestError(f"{where}: not a Parquet file, cut short or damaged; copy or write it again") from None
    unpacked_size = sum(file.metadata.row_group(at).total_byte_size for at in range(file.num_row_groups))
    packed_size = stream.seek(0, io.SEEK_END)
    if unpacked_size > RATIO_FROM and unpacked_size > RATIO_LIMIT * packed_size:
        raise RequestError(
            f"{where}: {unpacked_size // 2**20} MiB would come out of {packed_size // 2**10} KiB, more than "
            f"{RATIO_LIMIT} times as much: not what packed text looks like. If it is, write it again uncompressed"
        )
    for column in columns:
        if columns.count(column) > 1:
            raise RequestError(f"{where}: the column {name(column)} is there twice; rename one")
    return file


def _parquet_table(stream: IO[bytes], source: Source, text_column: str | None, wanted: Collection[str] | None) -> Table:
    file = open_parquet(stream, source)
    columns = names_ = file.schema_arrow.names
    if wanted is not None:
        columns = [column for column in columns if column in wanted or column == text_column]
    return Table(source, names_, _parquet_rows(file, columns, shown(source.path)))


def _parquet_rows(file: pq.ParquetFile, columns: list[str], where: str) -> Iterator[Row]:
    number = 0
    try:
        for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=columns):
            for values in python_rows(batch, number, where):
                number += 1
                yield Row(number, number, values)
    except (pa.ArrowException, OSError):
        raise RequestError(f"{where}: damaged after row {number}; copy or write it again") from None


def python_rows(batch: pa.RecordBatch, before: int, where: str) -> list[dict[str, Any]]:
    """The rows of a batch as Python has them, ``before`` rows being ahead of it.

    Raises:
        RequestError: naming file and row, if a value cannot be one of Python's.
    """
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
        return rows
    except (ValueError, OverflowError):  # among them UnicodeDecodeError; now find the row
        pass
    for row in range(batch.num_rows):
        try:
            batch.slice(row, 1).to_pylist()
        except UnicodeDecodeError:
            raise RequestError(f"{where}, row {before + row + 1}: not UTF-8; write the file again") from None
        except (ValueError, OverflowError):
            raise RequestError(f"{where}, row {before + row + 1}: a date or number out of range; correct it") from None
    raise AssertionError("a batch failed of which each row is sound")


def text_value(value: object, column: str, where: str) -> str | None:
    """A document's text, checked; None where there is none.

    Raises:
        RequestError: if it is not a string, or not one that every later step can carry.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise RequestError(f"{where}: {name(column)} holds {_kind(value)}, not text; every text must be a string")
    if "\x00" in value:
        raise RequestError(f"{where}: {name(column)} holds a NUL character; remove it")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(f"{where}: {name(column)} holds half a surrogate pair; remove it") from None
    return value


def plain_value(value: object, column: str, where: str, one_line: bool = True) -> str | None:
    """A label, id or the like as a string: 1.0 as 1, true and false as JSON has them; None for null, NaN and ''.

    A float that is whole has its .0 from a tool that has no whole numbers beside nulls.

    Raises:
        RequestError: if it is a list, an object or bytes, or, if ``one_line``, a string with control characters.
    """
    if value is None or value == "" or (isinstance(value, float | decimal.Decimal) and math.isnan(value)):
        return None
    if isinstance(value, str):
        value = text_value(value, column, where)
        if one_line and value is not None and CONTROL.search(value):
            raise RequestError(f"{where}: {name(column)} holds a line break or another control character; remove it")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | decimal.Decimal):
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    raise RequestError(f"{where}: {name(column)} holds {_kind(value)}; it must be a string or a number")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float() | decimal.Decimal():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case bytes():
            return "bytes"
        case _:
            return "a value of another kind"
