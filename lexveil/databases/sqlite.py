"""SQLite by the standard library.

ADBC's driver takes a column's type from its first 1,024 values, and fails where texts follow NULLs; here the types are
asked for first, in the same transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa

from lexveil.databases.address import Address
from lexveil.databases.base import (
    BATCH,
    LOCK_SECONDS,
    QUERY,
    RECORDS,
    Rows,
    quotable,
    quoted,
    require_columns,
    require_distinct,
    stripped,
    taken,
)
from lexveil.errors import RequestError, option
from lexveil.formats.messages import name

ARROW = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "blob": pa.binary()}


@contextmanager
def rows(address: Address, sql: str) -> Iterator[Rows]:
    """Run a query in a read-only transaction.

    Raises:
        RequestError: if there is no such file, or the query cannot be run; also while batches are read.
    """
    query = stripped(sql)
    with _session(address, query, "ro") as connection:
        connection.execute("pragma query_only = true")
        connection.execute("begin")
        cursor = connection.execute(query)
        if cursor.description is None:
            raise RequestError(f"{address.shown}: the query gives no rows; write a SELECT")
        columns = [column for column, *_ in cursor.description]
        require_distinct(columns)
        inner = [f"c{number}" for number in range(len(columns))]
        kinds = ", ".join(f"typeof({column})" for column in inner)
        found = connection.execute(
            f"with source ({', '.join(inner)}) as (\n{query}\n) select distinct {kinds} from source"
        ).fetchall()
        schema = pa.schema(
            [(column, _arrow_type(column, {row[number] for row in found})) for number, column in enumerate(columns)]
        )
        yield Rows(schema, _batches(cursor, schema, address, query), {})


def _arrow_type(column: str, kinds: set[str]) -> pa.DataType:
    kinds = kinds - {"null"}
    if kinds == {"integer", "real"}:
        return pa.float64()
    if len(kinds) > 1:
        raise RequestError(
            f"{QUERY}: {name(column)} holds values of several types ({', '.join(sorted(kinds))}); cast it in the query"
        )
    return ARROW[kinds.pop()] if kinds else pa.string()


def _batches(cursor: sqlite3.Cursor, schema: pa.Schema, address: Address, query: str) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            values = cursor.fetchmany(BATCH)
        except sqlite3.Error as error:
            raise _fault(error, address, query) from None
        if not values:
            return
        columns = zip(*values, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def _session(address: Address, query: str, mode: str) -> Iterator[sqlite3.Connection]:
    assert address.path is not None
    if not address.path.is_file() and mode != "rwc":
        raise RequestError(f"{address.shown}: there is no such file")
    try:
        with closing(
            sqlite3.connect(f"{address.path.as_uri()}?mode={mode}", LOCK_SECONDS, isolation_level=None, uri=True)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        raise _fault(error, address, query) from None


def _fault(error: sqlite3.Error, address: Address, query: str) -> RequestError:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith("SQLITE_BUSY") or code.startswith("SQLITE_LOCKED"):
        return RequestError(
            f"{address.shown}: it is locked by another process for {LOCK_SECONDS} s; try again when that has ended"
        )
    if code == "SQLITE_NOTADB":
        return RequestError(f"{address.shown}: is no database of SQLite")
    if code == "SQLITE_READONLY":
        return RequestError(
            f"{address.shown}: it can only be read; see to its permissions, or give {option('sql')} a SELECT"
        )
    if code == "SQLITE_ERROR":  # of names and syntax
        return RequestError(f"{address.shown}: {quotable(str(error), query)}")
    return RequestError(
        f"{address.shown}: it cannot be read or written ({code or 'a text is no UTF-8'}); what SQLite says may hold a "
        "value and is not shown"
    )


def check_table(address: Address, table: Sequence[str], if_exists: str, columns: Sequence[str] = ()) -> None:
    """See, before anything is spent, that a table can be written; as of PostgreSQL.

    Raises:
        RequestError: if it is there and must not be or lacks a column, or the file cannot be opened.
    """
    assert address.path is not None
    if not address.path.exists() and address.path.parent.is_dir():
        return
    with _session(address, table[-1], "rw") as connection:
        if there := _columns(connection, table[-1]):
            if if_exists == "fail":
                raise taken(address, table[-1])
            require_columns(address, table[-1], columns, there)


def write_table(
    address: Address,
    table: Sequence[str],
    if_exists: str,
    batches: pa.RecordBatchReader,
    kinds: Mapping[str, str],  # noqa: ARG001
    record: tuple[str, str],
) -> None:
    """Put rows into a table, with their record in ``lexveil_records``, in one transaction; as of PostgreSQL.

    Raises:
        RequestError: if that fails; the database is as it was then.
    """
    target, columns = quoted(table[-1]), batches.schema.names
    with _session(address, " ".join([*table, *columns, RECORDS]), "rwc") as connection:
        connection.execute("begin immediate")  # closing without a commit rolls back
        if there := _columns(connection, table[-1]):
            if if_exists == "fail":
                raise taken(address, table[-1])
            require_columns(address, table[-1], columns, there)
            if if_exists == "replace":
                connection.execute(f"delete from {target}")
        else:
            declared = ", ".join(f"{quoted(field.name)} {_declared(field.type)}" for field in batches.schema)
            connection.execute(f"create table {target} ({declared})")
        names, marks = ", ".join(map(quoted, columns)), ", ".join("?" * len(columns))
        for batch in batches:
            values = [_plain(column).to_pylist() for column in batch.columns]
            rows_of_batch = zip(*values, strict=True)
            connection.executemany(f"insert into {target} ({names}) values ({marks})", rows_of_batch)
        connection.execute(
            f"create table if not exists {RECORDS} (written text not null default current_timestamp, "
            "table_name text not null, release text not null, record text not null)"
        )
        connection.execute(
            f"insert into {RECORDS} (table_name, release, record) values (?, ?, ?)", (table[-1], *record)
        )
        connection.execute("commit")


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [column for (column,) in connection.execute("select name from pragma_table_info(?)", (table,))]


def _declared(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_boolean(kind):
        return "integer"
    if types.is_floating(kind):
        return "real"
    return "blob" if types.is_binary(kind) or types.is_large_binary(kind) else "text"


def _plain(column: pa.Array) -> pa.Array:
    """A column whose values SQLite knows: dates and decimals as text."""
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if types.is_nested(kind):
        raise RequestError("the query: SQLite has no lists; leave such columns out, or write to a file")
    is_known = _declared(kind) != "text" or types.is_string(kind) or types.is_large_string(kind)
    return column if is_known else column.cast(pa.string())
