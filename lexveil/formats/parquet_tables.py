"""Tables in Parquet: rows and chunks of them, and their writer."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.errors import RequestError
from lexveil.formats import chunks
from lexveil.formats.bare_tables import bare_array, bare_field, only_used
from lexveil.formats.base import Formulas, InputRow, InputTable, Source, TableRequest, Writer
from lexveil.formats.chunks import Chunk, Texts, gather, is_text, rewritten_type
from lexveil.formats.compression import require_plausible
from lexveil.formats.messages import name, no_documents, require_distinct

# of a row group that is written, at most
GROUP_ROWS, GROUP_CHARACTERS = chunks.ROWS, chunks.CHARACTERS
BATCH_ROWS = 1024  # read at a time where nothing is written back


def open_parquet(stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:
    """Open a Parquet file; its layout is the file.

    Raises:
        RequestError: if it is empty, damaged, or has a duplicate column.
    """
    file = _open(stream, source)
    columns: list[str] = file.schema_arrow.names
    chosen = None
    if request.others is not None:
        chosen = [
            column for column in columns if column in request.others or column in request.texts
        ]
    return InputTable(
        source, columns, _rows(file, chosen, source.shown), file, file.metadata.num_rows
    )


def parquet_chunks(table: InputTable, request: TableRequest) -> Iterator[Chunk]:
    """All rows, in chunks whose rest is a part of a record batch.

    Raises:
        RequestError: if a text column holds no texts; naming the first row with a fault.
    """
    where, file = table.source.shown, table.layout
    for column in request.texts:
        kind = file.schema_arrow.field(column).type
        if not is_text(kind):
            raise RequestError(
                f"{where}: {name(column)} is of type {_type_name(kind)}, not text; choose another"
            )
    for number, batch in _batches(file, chunks.ROWS, None, where):
        values = _python_rows(batch.select(request.columns), number, where)
        rows = (
            request.parse(row, line, table.source) for line, row in enumerate(values, number + 1)
        )
        start = 0
        for chunk in gather(rows, request.subject is not None):
            yield replace(chunk, first=number + start + 1, rest=batch.slice(start, len(chunk)))
            start += len(chunk)


class ParquetWriter(Writer):
    """Writes Parquet with the source's columns and types, and with nothing else of it.

    Metadata of the file and of fields, the names of extension types and entries of dictionaries
    that no written row has are left out: any program may have put texts there. Where a row group
    ends depends on what is written alone.
    """

    def __init__(
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> None:
        super().__init__(table, columns, formulas)
        self.schema = pa.schema(
            bare_field(_rewritten(field) if field.name in columns else field)
            for field in table.layout.schema_arrow
        )
        self.writer = self.files.enter_context(
            pq.ParquetWriter(out, self.schema, compression="zstd")
        )
        self.files.callback(self._end_group)
        self.waiting: list[pa.RecordBatch] = []
        self.n_rows = self.n_characters = 0  # of those that wait

    def write(self, chunk: Chunk, texts: Texts, keep: npt.NDArray[np.bool_]) -> None:
        """Write the chosen rows."""
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
        for row, kept in enumerate(keep.tolist()):
            if kept:
                self.n_rows += 1
                self.n_characters += sum(len(text or "") for text in texts[row])
            is_full = self.n_rows == GROUP_ROWS or self.n_characters >= GROUP_CHARACTERS
            if is_full or not kept or row + 1 == len(keep):
                self.waiting.append(batch.slice(start, row + kept - start))
                start = row + 1
            if is_full:
                self._end_group()

    def _end_group(self) -> None:
        waiting, self.waiting, self.n_rows, self.n_characters = self.waiting, [], 0, 0
        if any(batch.num_rows for batch in waiting):
            # In one piece: Parquet's pages follow the pieces of a column, and these where the
            # source was cut.
            table = pa.Table.from_batches(waiting).combine_chunks()
            self.writer.write_table(
                pa.table([only_used(column) for column in table.columns], schema=self.schema)
            )


def _written(text: str | None, field: pa.Field) -> str | None:
    """What stands for a text. Spans that are left out are empty where their column can have no
    null.
    """
    return "" if text is None and not field.nullable else text


def _rewritten(field: pa.Field) -> pa.Field:
    """The field of a rewritten column; one of spans that are no strings, which are left out, has
    room for null.
    """
    return (
        field.with_type(rewritten_type(field.type))
        if is_text(field.type)
        else field.with_nullable(True)
    )


def _type_name(kind: pa.DataType) -> str:
    """A type without the fields and the time zone in it, whose names are the user's."""
    return re.split(r"[<\[]", str(kind))[0]


def _open(stream: IO[bytes], source: Source) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        RequestError: if it is empty, damaged, or has a duplicate column.
    """
    where = source.shown
    try:
        file = pq.ParquetFile(stream, pre_buffer=False)  # else it keeps all that it has read
        columns = file.schema_arrow.names
    # the last one from names that are no UTF-8
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        if stream.seek(0, io.SEEK_END) == 0:
            raise no_documents(where) from None
        raise RequestError(
            f"{where}: not a Parquet file, truncated or damaged; copy or write it again"
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
    """The batches of a file, each with the number of rows before it."""
    number = 0
    try:
        for batch in file.iter_batches(batch_size=size, columns=columns):
            yield number, batch
            number += batch.num_rows
    except (pa.ArrowException, OSError):
        raise RequestError(f"{where}: damaged after row {number}; copy or write it again") from None


def _rows(file: pq.ParquetFile, columns: list[str] | None, where: str) -> Iterator[InputRow]:
    for before, batch in _batches(file, BATCH_ROWS, columns, where):
        for number, values in enumerate(_python_rows(batch, before, where), before + 1):
            yield InputRow(number, number, values)


def _python_rows(batch: pa.RecordBatch, before: int, where: str) -> list[dict[str, object]]:
    """The rows of a batch as Python values, ``before`` rows being ahead of it.

    Raises:
        RequestError: naming file and row, if a value has no Python counterpart.
    """
    try:
        rows: list[dict[str, object]] = batch.to_pylist()
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
