"""The Parquet format, with one document per row. Every column keeps its type. Arrow is imported
when a file is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from lexveil.io.formats.base import Format, Formulas, InputTable, Source, TableRequest, Writer
from lexveil.io.formats.chunks import Chunk, is_text


class Parquet(Format):
    """Parquet files, which have their own compression."""

    name = "parquet"
    title = "Parquet"
    endings = ("parquet",)
    row_name = "row"
    is_streamable = False

    def table(  # noqa: D102
        self, stream: IO[bytes], source: Source, request: TableRequest
    ) -> InputTable:
        from lexveil.io.formats.parquet_tables import open_parquet

        return open_parquet(stream, source, request)

    def text_columns(self, table: InputTable) -> list[str]:
        """Return the columns of strings."""
        schema = table.layout.file.schema_arrow
        return [column for column in table.columns if is_text(schema.field(column).type)]

    def chunks(  # noqa: D102
        self,
        table: InputTable,
        request: TableRequest,
        for_writing: bool,  # noqa: ARG002
    ) -> Iterator[Chunk]:
        from lexveil.io.formats.parquet_tables import parquet_chunks

        return parquet_chunks(table, request)

    def writer(  # noqa: D102
        self, table: InputTable, columns: Sequence[str], out: Path | IO[bytes], formulas: Formulas
    ) -> Writer:
        from lexveil.io.formats.parquet_tables import ParquetWriter

        return ParquetWriter(table, columns, out, formulas)
