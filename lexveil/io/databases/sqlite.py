"""SQLite through the standard library.

ADBC's driver infers a column's type from its first 1,024 values and fails if texts follow NULLs.
This module queries the types first, in the same transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import ClassVar

import pyarrow as pa

from lexveil.base.errors import RequestError, option
from lexveil.io.databases.address import Address
from lexveil.io.databases.base import (
    LOCK_SECONDS,
    QUERY,
    ROWS_AT_A_TIME,
    OpenDatabase,
    Rows,
    Types,
    listed,
    quotable,
    quoted,
)
from lexveil.io.formats.messages import name, require_distinct

ARROW = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "blob": pa.binary()}


class Sqlite(OpenDatabase):
    """An SQLite database."""

    record_columns: ClassVar = (
        "written text not null default current_timestamp, record text not null"
    )
    record_values: ClassVar = "?, ?, ?"

    def rows(self, query: str) -> Rows:  # noqa: D102
        self.connection.execute("pragma query_only = true")
        self.connection.execute("begin")
        cursor = self.cursor.execute(query)
        if cursor.description is None:
            raise RequestError(f"{self.address.shown}: the query returns no rows; write a SELECT")
        columns = [column for column, *_ in cursor.description]
        require_distinct(columns, QUERY)
        inner = [f"c{number}" for number in range(len(columns))]
        kinds = ", ".join(f"typeof({column})" for column in inner)
        table = self.connection.execute(
            f"with source ({', '.join(inner)}) as (\n{query}\n) select distinct {kinds} from source"
        ).fetchall()
        types = [
            _arrow_type(column, {row[number] for row in table})
            for number, column in enumerate(columns)
        ]
        schema = pa.schema(zip(columns, types, strict=True))
        return Rows(schema, self._batches(cursor, schema), {})

    def _batches(self, cursor: sqlite3.Cursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while values := cursor.fetchmany(ROWS_AT_A_TIME):
            columns = zip(*values, strict=True)
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def types(self, table: Sequence[str]) -> dict[str, str] | None:  # noqa: D102
        return (
            dict(
                self.connection.execute("select name, type from pragma_table_info(?)", (table[-1],))
            )
            or None
        )

    def insert(  # noqa: D102
        self,
        table: Sequence[str],
        batches: pa.RecordBatchReader,
        types: Types,  # noqa: ARG002
        is_new: bool,
    ) -> None:
        target = quoted(table[-1])
        if is_new:
            declared = ", ".join(
                f"{quoted(field.name)} {_declared(field.type)}" for field in batches.schema
            )
            self.cursor.execute(f"create table {target} ({declared})")
        names = listed(batches.schema.names)
        marks = ", ".join("?" * len(batches.schema))
        for batch in batches:
            values = [_plain(column).to_pylist() for column in batch.columns]
            self.cursor.executemany(
                f"insert into {target} ({names}) values ({marks})", zip(*values, strict=True)
            )


@contextmanager
def connected(address: Address, quotables: str, to_write: bool) -> Iterator[Sqlite]:
    """Connect to an SQLite database. The first write creates a missing file."""
    assert address.path is not None
    is_new = to_write and not address.path.exists() and address.path.parent.is_dir()
    if not is_new and not address.path.is_file():
        raise RequestError(f"{address.shown}: there is no such file")
    uri = f"{address.path.as_uri()}?mode={'rwc' if to_write else 'ro'}"
    try:
        with closing(
            sqlite3.connect(uri, LOCK_SECONDS, isolation_level=None, uri=True)
        ) as connection:
            if to_write:
                connection.execute("begin immediate")  # closing without a commit rolls back
            yield Sqlite(address, connection, connection.cursor())
    except sqlite3.Error as error:
        raise RequestError(f"{address.shown}: {_reason(error, quotables)}") from None


def _reason(error: sqlite3.Error, quotables: str) -> str:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            f"another process has locked the database for {LOCK_SECONDS} s; try again when "
            "that process has ended"
        )
    if code == "SQLITE_NOTADB":
        return "the file is not an SQLite database"
    if code == "SQLITE_READONLY":
        return f"the database is read-only; check its permissions, or give {option('sql')} a SELECT"
    if code == "SQLITE_ERROR":  # messages that name only identifiers and syntax
        return quotable(str(error), quotables)
    problem = code or "a text is not UTF-8"
    return (
        f"the database cannot be read or written ({problem}); SQLite's message may contain "
        "a value and is not shown"
    )


def _arrow_type(column: str, kinds: set[str]) -> pa.DataType:
    kinds = kinds - {"null"}
    if kinds == {"integer", "real"}:
        return pa.float64()
    if len(kinds) > 1:
        raise RequestError(
            f"{QUERY}: {name(column)} has values of several types "
            f"({', '.join(sorted(kinds))}); cast the column to one type"
        )
    return ARROW[kinds.pop()] if kinds else pa.string()


def _declared(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_boolean(kind):
        return "integer"
    if types.is_floating(kind):
        return "real"
    return "blob" if types.is_binary(kind) or types.is_large_binary(kind) else "text"


def _plain(column: pa.Array) -> pa.Array:
    """Convert a column to a type that SQLite has. Dates and decimals become text."""
    types = pa.types
    kind = column.type
    if types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if types.is_nested(kind):
        raise RequestError(
            "the query: SQLite has no lists; omit columns with lists, or write to a file"
        )
    is_known = _declared(kind) != "text" or types.is_string(kind) or types.is_large_string(kind)
    return column if is_known else column.cast(pa.string())
