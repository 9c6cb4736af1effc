"""PostgreSQL by ADBC: rows come as a stream of COPY, in batches, and go back in one transaction.

Addresses and passwords are libpq's: it reads PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSERVICE, ~/.pgpass and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyarrow as pa

from lexveil.databases.address import WHERE_PASSWORDS_ARE, Address
from lexveil.databases.base import (
    LOCK_SECONDS,
    QUERY,
    RECORDS,
    Rows,
    driver,
    lost,
    quotable,
    quoted,
    require_columns,
    require_distinct,
    stripped,
    taken,
)
from lexveil.errors import RequestError, option
from lexveil.formats.messages import name

BATCH_BYTES = 4 * 2**20
TYPE, TYPMOD = b"POSTGRESQL:type", b"POSTGRESQL:typmod"
# Types whose values Arrow has as they are, and arrays of them; all others are cast to text by the server.
PLAIN = {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bpchar", "name", "bytea", "date"}
PLAIN |= {"time", "timestamp", "timestamptz"}
PLAIN |= {f"_{kind}" for kind in PLAIN}
INCOMING = "lexveil_incoming"  # a temporary table

# What the server says while rows stream comes without its number; these say nothing of the data.
KNOWN = (
    "canceling statement due to statement timeout",
    "canceling statement due to lock timeout",
    "canceling statement due to user request",
    "canceling statement due to conflict with recovery",
    "could not resize shared memory segment",
    "No space left on device",
)
GONE = (
    "terminating connection",
    "server closed the connection",
    "no connection to the server",
    "connection not open",
    "SSL SYSCALL error",
    "could not receive data from server",
    "could not send data to server",
)
HINTS = {
    "55P03": f"a lock was not to be had in time ({LOCK_SECONDS} s, or lock_timeout in PGOPTIONS); try again later",
    "57014": "the statement was cancelled: by statement_timeout, or by somebody; see to either and run it again",
    "25006": f"the transaction is read-only, so nothing is written in it: give {option('sql')} a SELECT that changes "
    f"nothing, and "
    "for the table of -o a server that is no standby",
}
OF_QUERY = ("0A", "42", "3F")  # classes of SQLSTATE whose messages are about names and syntax


@contextmanager
def rows(address: Address, sql: str) -> Iterator[Rows]:
    """Run a query in a read-only transaction.

    Raises:
        RequestError: if there is no connection, or the query cannot be run; also while batches are read.
    """
    query = stripped(sql)
    with _session(address, query) as (connection, cursor):
        cursor.execute("set transaction isolation level repeatable read read only")
        _wait_for_locks(cursor)
        schema = cursor.adbc_execute_schema(query)
        require_distinct(schema.names)
        wanted, kinds = _wanted(schema)
        if kinds:
            query = f"select {', '.join(wanted)} from (\n{query}\n) as source"
        cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
        cursor.execute(query)
        reader = cursor.fetch_record_batch()
        types = pa.schema([pa.field(field.name, _arrow_type(field)) for field in schema])
        yield Rows(types, _cast(reader, types, address), kinds)
        with suppress(Exception):  # all was read: how the transaction ends changes nothing
            connection.rollback()


def _wanted(schema: pa.Schema) -> tuple[list[str], dict[str, str]]:
    """What to select of a query, and the server's names of the types that come as text or as decimals."""
    wanted, kinds = [], {}
    for field in schema:
        kind = _kind(field)
        column = quoted(field.name)
        if kind in PLAIN:
            wanted.append(column)
            continue
        kinds[field.name] = _sql_type(field)
        is_array = pa.types.is_list(field.type)
        wanted.append(f"{column}::text{'[]' if is_array else ''} as {column}")
    return wanted, kinds


def _kind(field: pa.Field) -> str:
    return str((field.metadata or {}).get(TYPE, b""), "utf-8")


def _decimal(field: pa.Field) -> tuple[int, int] | None:
    """Precision and scale, if they are declared and Arrow has room for them."""
    declared = int((field.metadata or {}).get(TYPMOD, b"-1")) - 4
    if _kind(field) != "numeric" or declared < 0:
        return None
    precision, scale = declared >> 16 & 0xFFFF, declared & 0x7FF
    return (precision, scale) if scale <= precision <= 76 else None


def _sql_type(field: pa.Field) -> str:
    """The server's own type of a column that comes as text."""
    decimal = _decimal(field)
    return quoted(_kind(field)) if decimal is None else f"numeric({decimal[0]},{decimal[1]})"


def _arrow_type(field: pa.Field) -> pa.DataType:
    """The type of a column in Arrow: a decimal where precision and scale are declared, else text where it is cast."""
    if _kind(field) in PLAIN:
        return field.type
    if (decimal := _decimal(field)) is not None:
        return pa.decimal128(*decimal) if decimal[0] <= 38 else pa.decimal256(*decimal)
    return pa.list_(pa.string()) if pa.types.is_list(field.type) else pa.string()


def _cast(reader: pa.RecordBatchReader, types: pa.Schema, address: Address) -> Iterator[pa.RecordBatch]:
    n_rows = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:
            raise _broken(error, address, n_rows) from None
        columns = []
        for field, array in zip(types, batch.columns, strict=True):
            try:
                columns.append(array if array.type.equals(field.type) else array.cast(field.type))
            except pa.ArrowException:
                raise RequestError(
                    f"{QUERY}: {name(field.name)} holds a value that is none of {field.type} (NaN, or an infinite "
                    "one); cast it to text in the query"
                ) from None
        n_rows += batch.num_rows
        yield pa.RecordBatch.from_arrays(columns, schema=types)


def _broken(error: Exception, address: Address, n_rows: int) -> RequestError:
    said = str(error)
    if any(phrase in said for phrase in GONE):
        return lost(address, n_rows)
    known = next((phrase for phrase in KNOWN if phrase in said), None)
    why = known or "what the server says may hold a value and is not shown; try the query in psql"
    return RequestError(f"{address.shown}: the query failed after {n_rows:,} rows ({why}); nothing was released")


@contextmanager
def _session(address: Address, query: str) -> Iterator[tuple[Any, Any]]:
    """A connection in a transaction, which is rolled back unless it was committed."""
    dbapi = driver("adbc_driver_postgresql.dbapi")
    try:
        connection = dbapi.connect(address.text)
    except dbapi.Error as error:
        raise RequestError(f"{address.shown}: {_no_connection(str(error))}") from None
    with closing(connection), closing(connection.cursor()) as cursor:
        try:
            yield connection, cursor
        except dbapi.Error as error:
            raise RequestError(f"{address.shown}: {_said(error, query)}") from None


def _no_connection(said: str) -> str:
    """What libpq says of a connection that it does not get: it knows no data, and quotes no password."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    line = re.sub(r"^.*?Failed to connect: ", "", " ".join(lines))[:300]
    hint = ""
    if "password" in line:
        hint = f". Passwords are read from {WHERE_PASSWORDS_ARE}"
    return f"no connection: {line.rstrip('.')}{hint}"


def _said(error: Any, query: str) -> str:
    """What the server says: of names and syntax as it is; of anything else only its number."""
    state = error.sqlstate or ""
    if state in HINTS:
        return HINTS[state]
    details = dict(error.details or [])
    primary = details.get("PG_DIAG_MESSAGE_PRIMARY") or details.get(b"PG_DIAG_MESSAGE_PRIMARY") or b""
    primary = primary.decode("utf-8", "replace") if isinstance(primary, bytes) else str(primary)
    if state[:2] in OF_QUERY and primary:
        return f"{quotable(primary, query)} (SQLSTATE {state})"
    if any(phrase in str(error) for phrase in GONE):
        return "the connection was lost; nothing was released. See to the server and run it again"
    number = f" (SQLSTATE {state})" if state else ""
    return f"the server refuses it{number}; what it says may hold a value and is not shown. Try the query in psql"


def _wait_for_locks(cursor: Any) -> None:
    cursor.execute(
        f"select set_config('lock_timeout', '{LOCK_SECONDS}s', true) where current_setting('lock_timeout') = '0'"
    )
    cursor.fetchall()


def check_table(address: Address, table: Sequence[str], if_exists: str, columns: Sequence[str] = ()) -> None:
    """See, before anything is spent, that a table can be written.

    Args:
        table: its name, after its schema's if one is given.
        columns: which it must have, if it is there.

    Raises:
        RequestError: if it is there and must not be or lacks a column, or there is no connection.
    """
    with _session(address, ".".join(table)) as (connection, cursor):
        if _exists(cursor, table):
            if if_exists == "fail":
                raise taken(address, ".".join(table))
            require_columns(address, ".".join(table), columns, _types(cursor, ".".join(map(quoted, table))))
        cursor.execute("select current_setting('transaction_read_only')")
        if cursor.fetchone() == ("on",):
            raise RequestError(f"{address.shown}: {HINTS['25006']}")
        connection.rollback()


def write_table(
    address: Address,
    table: Sequence[str],
    if_exists: str,
    batches: pa.RecordBatchReader,
    kinds: Mapping[str, str],
    record: tuple[str, str],
) -> None:
    """Put rows into a table, with their record in ``lexveil_records``, in one transaction.

    Args:
        kinds: the server's own types of columns that are text or decimals here; of a table that is there, its own
            types count.
        record: the name of the release, and the record.

    Raises:
        RequestError: if that fails; the database is as it was then.
    """
    target, columns = ".".join(map(quoted, table)), batches.schema.names
    with _session(address, " ".join([*table, *columns, *kinds.values(), RECORDS])) as (connection, cursor):
        _wait_for_locks(cursor)
        cursor.adbc_ingest(INCOMING, batches, mode="create", temporary=True)
        incoming = f"pg_temp.{quoted(INCOMING)}"
        if _exists(cursor, table):
            if if_exists == "fail":
                raise taken(address, ".".join(table))
            kinds = _types(cursor, target)
            require_columns(address, ".".join(table), columns, kinds)
            if if_exists == "replace":
                cursor.execute(f"delete from {target}")
            names = ", ".join(map(quoted, columns))
            cursor.execute(f"insert into {target} ({names}) select {_as(columns, kinds)} from {incoming}")
        else:
            cursor.execute(f"create table {target} as select {_as(columns, kinds)} from {incoming}")
        _keep_record(cursor, table, record)
        cursor.execute(f"drop table {incoming}")
        connection.commit()


def _as(columns: Sequence[str], types: Mapping[str, str]) -> str:
    return ", ".join(
        quoted(column) + (f"::{types[column]} as {quoted(column)}" if column in types else "") for column in columns
    )


def _exists(cursor: Any, table: Sequence[str]) -> bool:
    cursor.execute("select to_regclass($1) is not null", (".".join(map(quoted, table)),))
    return bool(cursor.fetchone()[0])


def _types(cursor: Any, target: str) -> dict[str, str]:
    cursor.execute(
        "select attname::text, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid = to_regclass($1) and attnum > 0 and not attisdropped",
        (target,),
    )
    return dict(cursor.fetchall())


def _keep_record(cursor: Any, table: Sequence[str], record: tuple[str, str]) -> None:
    records = [*table[:-1], RECORDS]
    target = ".".join(map(quoted, records))
    if not _exists(cursor, records):
        cursor.execute(
            f"create table {target} (written timestamptz not null default now(), table_name text not null, "
            "release text not null, record json not null)"
        )
    cursor.execute(
        f"insert into {target} (table_name, release, record) values ($1, $2, cast($3::text as json))",
        (table[-1], *record),
    )
