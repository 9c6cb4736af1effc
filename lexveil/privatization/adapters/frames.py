"""One text column of a table in memory: pandas, Polars, Arrow, a DuckDB relation, a Hugging Face data set."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lexveil.errors import RequestError
from lexveil.formats.bare_tables import bare_column, bare_field
from lexveil.formats.chunks import is_text, rewritten_type
from lexveil.formats.messages import names, shown

KINDS = "a list of strings, a column or table of pandas, Polars or Arrow, a DuckDB relation, or a datasets.Dataset"


@dataclass(frozen=True, slots=True)
class Frame:
    """A table whose columns can be read and one of which can be replaced.

    Attributes:
        columns: their names.
        read: a column by its name, as a list, null as None.
        replaced: the table, of the same kind, with other texts in the place of a column.
    """

    columns: Sequence[str]
    read: Callable[[str], list[Any]]
    replaced: Callable[[str, list[str | None]], Any]

    def named(self, column: str | None, role: str) -> str:
        """A column that is there.

        Raises:
            RequestError: if none is named, or there is no such column.
        """
        if column is None:
            raise RequestError(f"{role}: a table was given; name the column, one of {names(self.columns)}")
        if column not in self.columns:
            raise RequestError(f"{role}: {shown(column)} is none of the columns {names(self.columns)}")
        return column


def frame_of(values: Any) -> Frame | None:
    """The table that was given; None if it is none.

    Raises:
        RequestError: of a kind that has to be made a table first, with how.
    """
    kind = f"{type(values).__module__.partition('.')[0]}.{type(values).__name__}"
    if isinstance(values, pa.Table | pa.RecordBatch):
        return _of_arrow(values)
    if hasattr(values, "fetch_arrow_table") and hasattr(values, "columns"):  # a relation of DuckDB
        return _of_relation(values)
    if kind == "datasets.Dataset":
        return _of_dataset(values)
    if kind == "datasets.DatasetDict":
        raise RequestError(f"a DatasetDict; give one of its splits: {names(list(values))}")
    if kind in ("datasets.IterableDataset", "datasets.IterableDatasetDict"):
        raise RequestError(
            "a streaming data set is never whole; use `dataset.map(lexveil.PrivatizeBatches(...), batched=True)`"
        )
    if kind == "polars.LazyFrame":
        raise RequestError("a LazyFrame has no rows yet; give frame.collect()")
    if kind == "polars.DataFrame":
        return _of_polars(values)
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        return _of_pandas(values)
    return None


def column_list(values: Any, name: str) -> list[Any]:
    """A column as a list, null as None.

    Raises:
        RequestError: if it is no column.
    """
    if isinstance(values, list | tuple):
        return list(values)
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if hasattr(values, "isna") and hasattr(values, "index") and hasattr(values, "dtype"):  # a Series of pandas
        absent = values.isna().tolist()
        return [None if gone else value for value, gone in zip(values.tolist(), absent, strict=True)]
    if hasattr(values, "to_list"):  # polars
        return list(values.to_list())
    raise RequestError(f"{name}: a {type(values).__name__}; give {KINDS}")


def column_like(values: Any, rewritten: list[str | None]) -> Any:
    """Rewritten texts as a column of the kind that was given."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        array = _array(rewritten, values.type)
        return pa.chunked_array([array]) if isinstance(values, pa.ChunkedArray) else array
    if hasattr(values, "isna"):
        # The categories are other ones now.
        dtype = "category" if values.dtype == "category" else values.dtype
        return type(values)(rewritten, index=values.index, name=values.name, dtype=dtype)
    if hasattr(values, "to_list"):
        return type(values)(values.name, rewritten)
    return tuple(rewritten) if isinstance(values, tuple) else rewritten


def _array(rewritten: list[str | None], kind: pa.DataType) -> pa.Array:
    wanted = rewritten_type(kind) if is_text(kind) else pa.string()
    return pa.array(rewritten, pa.large_string()).cast(wanted)


def _of_arrow(table: Any) -> Frame:
    def replaced(column: str, texts: list[str | None]) -> Any:
        index = table.schema.get_field_index(column)
        array = _array(texts, table.schema.field(index).type)
        made = table.set_column(index, table.schema.field(index).with_type(array.type), array)
        schema = pa.schema([bare_field(field) for field in made.schema])
        columns = [bare_column(column, field.type) for column, field in zip(made.columns, schema, strict=True)]
        if isinstance(table, pa.RecordBatch):
            columns = [column.combine_chunks() for column in columns]
        return type(table).from_arrays(columns, schema=schema)

    return Frame(table.schema.names, lambda column: list(table.column(column).to_pylist()), replaced)


def _of_relation(relation: Any) -> Frame:
    import duckdb

    table = relation.fetch_arrow_table()
    arrow = _of_arrow(table)
    return Frame(arrow.columns, arrow.read, lambda column, texts: duckdb.from_arrow(arrow.replaced(column, texts)))


def _of_pandas(frame: Any) -> Frame:
    def replaced(column: str, texts: list[str | None]) -> Any:
        made = frame.assign(**{column: column_like(frame[column], texts)})
        made.attrs = {}  # to_parquet writes them, and they may quote the source
        categories = [name for name, kind in made.dtypes.items() if kind == "category" and name != column]
        return made.assign(**{name: made[name].cat.remove_unused_categories() for name in categories})

    return Frame(list(frame.columns), lambda column: column_list(frame[column], column), replaced)


def _of_polars(frame: Any) -> Frame:
    def replaced(column: str, texts: list[str | None]) -> Any:
        import polars as pl

        # Categories are made again, for there may be some that no row has.
        categories = pl.col(pl.Categorical).exclude(column)
        made = frame.with_columns(categories.cast(pl.String).cast(pl.Categorical))
        return made.with_columns(column_like(frame[column], texts))

    return Frame(frame.columns, lambda column: list(frame[column].to_list()), replaced)


def without_source(data: Any) -> Any:
    """A data set of Hugging Face, streaming or not, without what it carries on from the one that it was made of.

    That is its size in bytes, checksums, description, and a fingerprint that follows from the texts.
    """
    from datasets import DatasetInfo  # type: ignore[import-untyped]

    made = copy(data)
    made._info = DatasetInfo(features=deepcopy(data.features))
    if hasattr(made, "_fingerprint"):
        made._fingerprint = secrets.token_hex(8)
    return made


def _of_dataset(data: Any) -> Frame:
    table = data.with_format("arrow")[:]  # follows a selection or an order
    arrow = _of_arrow(table)

    def replaced(column: str, texts: list[str | None]) -> Any:
        made = type(data)(arrow.replaced(column, texts), info=data.info.copy(), split=data.split)
        return without_source(made.with_format(**data.format) if data.format["type"] else made)

    return Frame(arrow.columns, arrow.read, replaced)
