"""PostgreSQL through ADBC. Rows arrive as a stream of COPY, in batches, and are written in one
transaction.

libpq handles addresses and passwords: it reads PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSERVICE,
~/.pgpass and similar sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

import pyarrow as pa

from lexveil.base.errors import RequestError, option
from lexveil.io.databases.address import WHERE_PASSWORDS_ARE, Address
from lexveil.io.databases.base import (
    LOCK_SECONDS,
    QUERY,
    OpenDatabase,
    Rows,
    Types,
    listed,
    quotable,
    quoted,
)
from lexveil.io.formats.messages import name, require_distinct

BATCH_BYTES = 4 * 2**20
TYPE = b"POSTGRESQL:type"
TYPMOD = b"POSTGRESQL:typmod"
# Types that Arrow can represent, alone and in arrays. The server casts all other types to text.
PLAIN = {
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "text",
    "varchar",
    "bpchar",
    "name",
    "bytea",
    "date",
}
PLAIN |= {"time", "timestamp", "timestamptz"}
PLAIN |= {f"_{kind}" for kind in PLAIN}
INCOMING = "lexveil_incoming"  # a temporary table

# The server's errors during a stream of rows have no number. The messages below contain no data.
KNOWN = re.compile(
    "canceling statement due to (statement timeout|lock timeout|user request|conflict with "
    "recovery)"
    "|could not resize shared memory segment|No space left on device"
)
GONE = re.compile(
    "terminating connection|server closed the connection|no connection to the "
    "server|connection not open"
    "|SSL SYSCALL error|could not receive data from server|could not send data to server"
)
READ_ONLY = (
    f"the transaction is read-only; give {option('sql')} a SELECT, or for a table use a "
    "server that is not a standby"
)
HINTS = {
    "55P03": f"another process held a lock for too long ({LOCK_SECONDS} s, or lock_timeout "
    "in PGOPTIONS); try again later",
    "57014": "the statement was cancelled, by statement_timeout or by a user; raise "
    "statement_timeout or ask the user, and run it again",
    "25006": READ_ONLY,
}
OF_QUERY = ("0A", "42", "3F")  # classes of SQLSTATE whose messages name only identifiers and syntax


class Postgresql(OpenDatabase):
    """A PostgreSQL database."""

    record_columns: ClassVar = "written timestamptz not null default now(), record json not null"
    record_values: ClassVar = "$1, $2, cast($3::text as json)"

    def rows(self, query: str) -> Rows:  # noqa: D102
        cursor = self.cursor
        cursor.execute("set transaction isolation level repeatable read read only")
        self._wait_for_locks()
        schema = cursor.adbc_execute_schema(query)
        require_distinct(schema.names, QUERY)
        if kinds := {field.name: _sql_type(field) for field in schema if _kind(field) not in PLAIN}:
            query = f"select {', '.join(map(_selected, schema))} from (\n{query}\n) as source"
        cursor.adbc_statement.set_options(
            **{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)}
        )
        cursor.execute(query)
        types = pa.schema([pa.field(field.name, _arrow_type(field)) for field in schema])
        return Rows(types, _cast(cursor.fetch_record_batch(), types, self.address), kinds)

    def types(self, table: Sequence[str]) -> dict[str, str] | None:  # noqa: D102
        target = quoted(*table)
        self.cursor.execute("select to_regclass($1) is not null", (target,))
        if self.cursor.fetchone() == (False,):
            return None
        self.cursor.execute(
            "select attname::text, format_type(atttypid, atttypmod) from pg_attribute "
            "where attrelid = to_regclass($1) and attnum > 0 and not attisdropped",
            (target,),
        )
        return dict(self.cursor.fetchall())

    def insert(  # noqa: D102
        self, table: Sequence[str], batches: pa.RecordBatchReader, types: Types, is_new: bool
    ) -> None:
        self._wait_for_locks()
        self.cursor.adbc_ingest(INCOMING, batches, mode="create", temporary=True)
        incoming = f"pg_temp.{quoted(INCOMING)}"
        target = quoted(*table)
        columns = batches.schema.names
        values = ", ".join(
            quoted(column) + (f"::{types[column]} as {quoted(column)}" if column in types else "")
            for column in columns
        )
        into = (
            f"create table {target} as" if is_new else f"insert into {target} ({listed(columns)})"
        )
        self.cursor.execute(f"{into} select {values} from {incoming}")
        self.cursor.execute(f"drop table {incoming}")

    def _wait_for_locks(self) -> None:
        self.cursor.execute(
            f"select set_config('lock_timeout', '{LOCK_SECONDS}s', true) where "
            "current_setting('lock_timeout') = '0'"
        )
        self.cursor.fetchall()


def connection_of(address: Address, autocommit: bool = False) -> Any:
    """Open a connection through the ADBC driver.

    Raises:
        RequestError: if the drivers are not installed, or the connection fails.
    """
    try:
        from adbc_driver_postgresql import dbapi
    except ModuleNotFoundError:
        raise RequestError(
            "adbc-driver-postgresql is not installed; `pip install 'lexveil[databases]'`"
        ) from None
    try:
        return dbapi.connect(address.text, autocommit=autocommit)
    except dbapi.Error as error:
        raise RequestError(f"{address.shown}: {_no_connection(str(error))}") from None


@contextmanager
def connected(address: Address, quotables: str, to_write: bool) -> Iterator[Postgresql]:
    """Connect to a PostgreSQL database.

    Raises:
        RequestError: if the drivers are not installed, or the database reports an error.
    """
    connection = connection_of(address)
    with closing(connection), closing(connection.cursor()) as cursor:
        try:
            if to_write:
                cursor.execute("select current_setting('transaction_read_only')")
                if cursor.fetchone() == ("on",):
                    raise RequestError(f"{address.shown}: {READ_ONLY}")
            yield Postgresql(address, connection, cursor)
        except connection.Error as error:
            raise RequestError(f"{address.shown}: {_reason(error, quotables)}") from None


def _kind(field: pa.Field) -> str:
    return str((field.metadata or {}).get(TYPE, b""), "utf-8")


def _selected(field: pa.Field) -> str:
    """Return the SQL expression that selects a column. The column is cast to text if Arrow cannot
    represent its values.
    """
    column = quoted(field.name)
    as_text = f"::text{'[]' if pa.types.is_list(field.type) else ''} as {column}"
    return column if _kind(field) in PLAIN else column + as_text


def _decimal(field: pa.Field) -> tuple[int, int] | None:
    """Return the precision and scale of a numeric column. The result is None if they are not
    declared or do not fit into an Arrow decimal.
    """
    declared = int((field.metadata or {}).get(TYPMOD, b"-1")) - 4
    if _kind(field) != "numeric" or declared < 0:
        return None
    precision = declared >> 16 & 0xFFFF
    scale = declared & 0x7FF
    return (precision, scale) if scale <= precision <= 76 else None


def _sql_type(field: pa.Field) -> str:
    """Return the server's type of a column that is read as text."""
    decimal = _decimal(field)
    return quoted(_kind(field)) if decimal is None else f"numeric({decimal[0]},{decimal[1]})"


def _arrow_type(field: pa.Field) -> pa.DataType:
    """Return the Arrow type of a column. A numeric column with precision and scale is a decimal,
    and a column that is cast is text.
    """
    if _kind(field) in PLAIN:
        return field.type
    if (decimal := _decimal(field)) is not None:
        return pa.decimal128(*decimal) if decimal[0] <= 38 else pa.decimal256(*decimal)
    return pa.list_(pa.string()) if pa.types.is_list(field.type) else pa.string()


def _cast(
    reader: pa.RecordBatchReader, types: pa.Schema, address: Address
) -> Iterator[pa.RecordBatch]:
    n_rows = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (OSError, pa.ArrowException) as error:
            raise RequestError(f"{address.shown}: {_broken(str(error), n_rows)}") from None
        columns = []
        for field, array in zip(types, batch.columns, strict=True):
            try:
                columns.append(array if array.type.equals(field.type) else array.cast(field.type))
            except pa.ArrowException:
                raise RequestError(
                    f"{QUERY}: {name(field.name)} has a value that the type {field.type} "
                    "cannot hold (NaN or infinity); cast it to text in the query"
                ) from None
        n_rows += batch.num_rows
        yield pa.RecordBatch.from_arrays(columns, schema=types)


def _broken(message: str, n_rows: int) -> str:
    """Return a message about a stream of rows that broke off. The server gives no error number in
    this case.
    """
    if GONE.search(message):
        return (
            f"the connection was lost after {n_rows:,} rows; nothing was released or spent; "
            "run it again"
        )
    known = KNOWN.search(message)
    why = (
        known[0]
        if known
        else "the server's message may contain a value and is not shown; try the query in psql"
    )
    return f"the query failed after {n_rows:,} rows ({why}); nothing was released"


def _no_connection(message: str) -> str:
    """Return libpq's message about a failed connection. It contains no data and no password."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    line = re.sub(r"^.*?Failed to connect: ", "", " ".join(lines))[:300]
    hint = f"; passwords are read from {WHERE_PASSWORDS_ARE}" if "password" in line else ""
    return f"the connection failed: {line.rstrip('.')}{hint}"


def _reason(error: Any, quotables: str) -> str:
    """Return a message for an error of the server. The message has the server's text if the error
    is about names and syntax, and otherwise the error number.
    """
    state = error.sqlstate or ""
    if state in HINTS:
        return HINTS[state]
    details = {
        str(key, "ascii") if isinstance(key, bytes) else key: value
        for key, value in error.details or []
    }
    primary = details.get("PG_DIAG_MESSAGE_PRIMARY", b"")
    primary = primary.decode("utf-8", "replace") if isinstance(primary, bytes) else primary
    if state[:2] in OF_QUERY and primary:
        return f"{quotable(primary, quotables)} (SQLSTATE {state})"
    if GONE.search(str(error)):
        return "the connection was lost and nothing was released; check the server and run it again"
    number = f" (SQLSTATE {state})" if state else ""
    return (
        f"the server refuses the statement{number}; its message may contain a value and is "
        "not shown; try the query in psql"
    )
