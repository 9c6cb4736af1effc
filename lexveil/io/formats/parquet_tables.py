"""Parquet tables: opening, chunks of rows, and writer."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError
from lexveil.io.formats import chunks
from lexveil.io.formats.bare_tables import bare_array, bare_field, only_used, require_plain_types
from lexveil.io.formats.base import Formulas, InputRow, InputTable, Source, TableRequest, Writer
from lexveil.io.formats.chunks import Chunk, Texts, gather, is_text, rewritten_type
from lexveil.io.formats.compression import require_plausible
from lexveil.io.formats.messages import name, no_documents, require_distinct
from lexveil.io.formats.values import exact_values

# largest size of a row group that is written
GROUP_ROWS = chunks.ROWS_OF_A_CHUNK
GROUP_CHARACTERS = chunks.CHARACTERS_OF_A_CHUNK
INT96 = "INT96"  # physical type of old timestamps, in nanoseconds
BATCH_ROWS = 1024  # number of rows to read at a time if no Parquet file is written


class ParquetLayout(NamedTuple):
    """Handles of an open Parquet file.

    Attributes:
        file: the file, from which rows are read.
        exact: the same file, opened with old timestamps (INT96) in nanoseconds; None if the file
            has no such timestamps.
    """

    file: pq.ParquetFile
    exact: pq.ParquetFile | None


def open_parquet(stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:
    """Open a Parquet file. The layout of the table is a ``ParquetLayout``.

    Raises:
        RequestError: if the file is empty or damaged, or has a duplicate column.
    """
    file = _open(stream, source)
    columns: list[str] = file.schema_arrow.names
    chosen = None
    if request.others is not None:
        chosen = [
            column for column in columns if column in request.others or column in request.texts
        ]
    return InputTable(
        source,
        columns,
        _rows(file, chosen, source.shown),
        ParquetLayout(file, _nanoseconds(file, stream)),
        file.metadata.num_rows,
    )


def parquet_chunks(table: InputTable, request: TableRequest) -> Iterator[Chunk]:
    """Yield all rows of a Parquet table in chunks. The ``rest`` of a chunk is a slice of a record
    batch.

    Raises:
        RequestError: if a text column contains no texts, or a row has a fault; the message names
            the first such row.
    """
    layout: ParquetLayout = table.layout
    where = table.source.shown
    file = layout.file
    for column in request.texts:
        kind = file.schema_arrow.field(column).type
        if not is_text(kind):
            raise RequestError(
                f"{where}: {name(column)} has the type {_type_name(kind)}, not text; choose "
                "another column"
            )
    _require_writable(file, request.rewritten, where)
    exact = iter(()) if layout.exact is None else layout.exact.iter_batches(chunks.ROWS_OF_A_CHUNK)
    for number, batch in _batches(file, chunks.ROWS_OF_A_CHUNK, None, where):
        _require_microseconds(batch, next(exact, None), where)
        values = _python_rows(batch.select(request.columns), number, where)
        rows = (
            request.parse(row, line, table.source) for line, row in enumerate(values, number + 1)
        )
        start = 0
        for chunk in gather(rows, request.subject is not None):
            yield replace(chunk, first=number + start + 1, rest=batch.slice(start, len(chunk)))
            start += len(chunk)


class ParquetWriter(Writer):
    """Writer of Parquet files with the source's columns and types, and nothing else of the source.

    Metadata of the file and of fields, the names of extension types, and dictionary entries that no
    written row uses are omitted, because any program may have put texts there. The ends of row
    groups depend only on the written data.
    """

    def __init__(
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> None:
        super().__init__(table, columns, formulas)
        self.schema = _written_schema(table.layout.file, columns)
        self.writer = self.files.enter_context(
            pq.ParquetWriter(out, self.schema, compression="zstd", **_old_types(table.layout.file))
        )
        self.files.callback(self._end_group)
        self.waiting: list[pa.RecordBatch] = []
        self.n_rows = self.n_characters = 0  # size of ``waiting``

    def write(self, chunk: Chunk, texts: Texts, keep: npt.NDArray[np.bool_]) -> None:
        """Write the rows of a chunk for which ``keep`` is true, with ``texts`` in place of their
        texts.
        """
        batch: pa.RecordBatch = chunk.rest
        for number, column in enumerate(self.columns):
            position = batch.schema.get_field_index(column)
            field = self.schema.field(position)
            rewritten = (
                pa.array([_written(row[number], field) for row in texts], pa.large_string()).cast(
                    field.type
                )
                if is_text(field.type)
                else pa.nulls(len(texts), field.type)
            )
            batch = batch.set_column(position, field, rewritten)
        batch = pa.RecordBatch.from_arrays(
            [
                bare_array(column, field.type)
                for column, field in zip(batch.columns, self.schema, strict=True)
            ],
            schema=self.schema,
        )
        # Runs of rows, because Arrow cannot filter every type (string_view).
        start = 0
        for row, is_kept in enumerate(keep.tolist()):
            if is_kept:
                self.n_rows += 1
                self.n_characters += sum(len(text or "") for text in texts[row])
            is_full = self.n_rows == GROUP_ROWS or self.n_characters >= GROUP_CHARACTERS
            if is_full or not is_kept or row + 1 == len(keep):
                self.waiting.append(batch.slice(start, row + is_kept - start))
                start = row + 1
            if is_full:
                self._end_group()

    def _end_group(self) -> None:
        waiting, self.waiting, self.n_rows, self.n_characters = self.waiting, [], 0, 0
        if any(batch.num_rows for batch in waiting):
            # Combine the chunks of a column, because Parquet's pages follow these chunks, which
            # show where the source was cut.
            table = pa.Table.from_batches(waiting).combine_chunks()
            self.writer.write_table(
                pa.table([only_used(column) for column in table.columns], schema=self.schema)
            )


def _written(text: str | None, field: pa.Field) -> str | None:
    """Return the Parquet value that is written for a text. If the text is null (such as omitted
    spans) and its column cannot have nulls, the value is "".
    """
    return "" if text is None and not field.nullable else text


def _rewritten(field: pa.Field) -> pa.Field:
    """Return the Arrow field of a rewritten column. A column of detector spans that are not strings
    becomes nullable, because spans are omitted from the output.
    """
    return (
        field.with_type(rewritten_type(field.type))
        if is_text(field.type)
        else field.with_nullable(nullable=True)
    )


def _written_schema(file: pq.ParquetFile, rewritten: Collection[str]) -> pa.Schema:
    return pa.schema(
        bare_field(_rewritten(field) if field.name in rewritten else field)
        for field in file.schema_arrow
    )


def _leaves(schema: pq.ParquetSchema) -> Iterator[Any]:
    return (schema.column(number) for number in range(len(schema)))


def _old_types(file: pq.ParquetFile) -> dict[str, bool]:
    """Return the options with which the Parquet writer keeps the source's types of times and
    timestamps.
    """
    kinds = [_type_of(leaf) for leaf in _leaves(file.schema)]
    return {
        "use_deprecated_int96_timestamps": INT96 in kinds,
        "write_time_adjusted_to_utc": any(
            "Time {" in kind and '"isAdjustedToUTC": true' in kind for kind in kinds
        ),
    }


def _type_of(leaf: Any) -> str:
    """Return the logical type of a Parquet column, or its physical type if it has no logical
    type.
    """
    said = json.loads(leaf.logical_type.to_json())
    kind = said.pop("Type")
    if kind == "None" or (kind == "Int" and said["isSigned"] and said["bitWidth"] >= 32):
        return str(leaf.physical_type)
    return f"{kind} {json.dumps(said, sort_keys=True)}"


def _require_writable(file: pq.ParquetFile, rewritten: Collection[str], where: str) -> None:
    """Check that every column that is not rewritten can be written with its type.

    Raises:
        RequestError: if a column cannot be written; the message names the first such column.
    """
    require_plain_types(file.schema_arrow, rewritten, where)
    for column in _geometries(file):
        if column not in rewritten:
            raise RequestError(
                f"{where}: {name(column)} is a geometry of GeoParquet, and the description "
                "of geometries is not written; convert it to bytes or text, or omit it"
            )
    schema = _written_schema(file, rewritten)
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema, **_old_types(file)):
        pass
    source = _leaves(file.schema)
    written = _leaves(pq.ParquetFile(out).schema)
    for field in schema:
        for _ in range(_n_leaves(field.type)):
            kind = _type_of(next(source))
            is_same = kind == _type_of(next(written))
            if field.name not in rewritten and not is_same:
                raise RequestError(
                    f"{where}: {name(field.name)} has a Parquet type that cannot be written "
                    f"together with the other columns ({kind.partition(' ')[0]}); cast it "
                    "to another type, or omit it"
                )


def _nanoseconds(file: pq.ParquetFile, stream: IO[bytes]) -> pq.ParquetFile | None:
    if INT96 not in map(_type_of, _leaves(file.schema)):
        return None
    return pq.ParquetFile(stream, pre_buffer=False)


def _require_microseconds(batch: pa.RecordBatch, exact: pa.RecordBatch | None, where: str) -> None:
    """Check that old timestamps (INT96) are whole microseconds, because fractions would be lost.

    Args:
        batch: rows with old timestamps in microseconds.
        exact: the same rows with timestamps in nanoseconds, which overflow for far dates.
        where: the file, for messages.

    Raises:
        RequestError: if a timestamp has a fraction of a microsecond; the message names the column.
    """
    if exact is None:
        return
    for field, column, other in zip(batch.schema, batch.columns, exact.columns, strict=True):
        for rough, fine in zip(_flat(column), _flat(other), strict=True):
            if fine.type == rough.type or not pa.types.is_timestamp(fine.type):
                continue
            micros = pc.fill_null(rough.cast(pa.int64()), 0).to_numpy()
            nanos = pc.fill_null(fine.cast(pa.int64()), 0).to_numpy()
            if ((nanos // 1000 == micros) & (nanos % 1000 != 0)).any():
                raise RequestError(
                    f"{where}: {name(field.name)} has old timestamps (INT96) with fractions "
                    "of a microsecond, which would be lost; write the column in another "
                    "type"
                )


def _flat(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of primitive type inside a nested Arrow array."""
    kind = array.type
    if pa.types.is_struct(kind):
        for values in array.flatten():
            yield from _flat(values)
    elif pa.types.is_map(kind):
        yield from (*_flat(array.keys), *_flat(array.items))
    elif pa.types.is_nested(kind):
        yield from _flat(array.flatten())
    else:
        yield array


def _geometries(file: pq.ParquetFile) -> list[str]:
    """Return the columns that the file's metadata declares as geometries."""
    try:
        described = json.loads((file.metadata.metadata or {}).get(b"geo", b"{}"))["columns"]
        return [column for column in file.schema_arrow.names if column in described]
    except (ValueError, KeyError, TypeError):
        return []


def _n_leaves(kind: pa.DataType) -> int:
    """Return the number of Parquet columns (leaves) that store a column of an Arrow type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _n_leaves(kind.storage_type)
    if pa.types.is_dictionary(kind) or not kind.num_fields:
        return 1
    return sum(_n_leaves(kind.field(number).type) for number in range(kind.num_fields))


def _type_name(kind: pa.DataType) -> str:
    """Return the name of an Arrow type without its field names and time zone, which the user
    chose.
    """
    return re.split(r"[<\[]", str(kind))[0]


def _open(stream: IO[bytes], source: Source) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        RequestError: if the file is empty or damaged, has a duplicate column, or has a column of a
            type that Arrow does not know.
    """
    where = source.shown
    try:
        # By default, Arrow keeps all data that it has read, and reads INT96 as nanoseconds, which
        # overflow before 1677 and after 2262.
        file = pq.ParquetFile(stream, pre_buffer=False, coerce_int96_timestamp_unit="us")
        columns = file.schema_arrow.names
    except pa.ArrowNotImplementedError:
        raise RequestError(
            f"{where}: a column has a type that Arrow does not know; omit the column, or cast it"
        ) from None
    # UnicodeDecodeError comes from column names that are not UTF-8
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        if stream.seek(0, io.SEEK_END) == 0:
            raise no_documents(where) from None
        raise RequestError(
            f"{where}: the file is not a Parquet file, or it is truncated or damaged; copy "
            "or write it again"
        ) from None
    expanded_size = sum(
        file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups)
    )
    size = stream.seek(0, io.SEEK_END)
    require_plausible(where, size, expanded_size)
    require_distinct(columns, where)
    return file


def _batches(
    file: pq.ParquetFile, size: int, columns: list[str] | None, where: str
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the record batches of a Parquet file, each with the number of rows before the batch."""
    number = 0
    try:
        for batch in file.iter_batches(batch_size=size, columns=columns):
            yield number, batch
            number += batch.num_rows
    except (pa.ArrowException, OSError):
        if (column := _unreadable_list(file, columns)) is not None:
            raise RequestError(
                f"{where}: {name(column)} has lists that are not stored in Parquet's form, "
                "as when DuckDB stores null among lists of a fixed length; cast it to lists "
                "of any length, or omit it"
            ) from None
        raise RequestError(
            f"{where}: the file is damaged after row {number}; copy or write it again"
        ) from None


def _unreadable_list(file: pq.ParquetFile, columns: list[str] | None) -> str | None:
    """Return the first column of a damaged Parquet file with a list that claims more values than
    the column stores. The result is None if there is no such column.
    """
    for field in file.schema_arrow:
        if pa.types.is_nested(field.type) and (columns is None or field.name in columns):
            try:
                for _ in file.iter_batches(columns=[field.name]):
                    pass
            except pa.ArrowInvalid as error:
                if "list offsets" in str(error):
                    return str(field.name)
            except (pa.ArrowException, OSError):
                return None
    return None


def _rows(file: pq.ParquetFile, columns: list[str] | None, where: str) -> Iterator[InputRow]:
    for before, batch in _batches(file, BATCH_ROWS, columns, where):
        for number, values in enumerate(_python_rows(batch, before, where), before + 1):
            yield InputRow(number, number, values)


def _python_rows(batch: pa.RecordBatch, before: int, where: str) -> list[dict[str, object]]:
    """Convert the rows of a record batch to Python values.

    Args:
        before: the number of rows before the batch, for messages.

    Raises:
        RequestError: if a value has no Python counterpart; the message names the file and the row.
    """
    try:
        rows: list[dict[str, object]] = batch.to_pylist()
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if pa.types.is_float16(field.type) or pa.types.is_float32(field.type):
                for row, value in zip(rows, exact_values(column), strict=True):
                    row[field.name] = value
        return rows
    except (ValueError, OverflowError) as error:  # among them UnicodeDecodeError
        if batch.num_rows == 1:
            problem = (
                "not UTF-8"
                if isinstance(error, UnicodeDecodeError)
                else "a date or number out of range"
            )
            raise RequestError(
                f"{where}, row {before + 1}: {problem}; write the file again"
            ) from None
    half = batch.num_rows // 2
    parts = ((batch.slice(0, half), before), (batch.slice(half), before + half))
    return [row for part, ahead in parts for row in _python_rows(part, ahead, where)]
