"""Storage of a ledger's tables in PostgreSQL (through ADBC), so that releases of several machines
share one budget.

The SQL and the steps are the same as for SQLite. A transaction that writes locks the table of the
ledger's log, as it locks the whole file in SQLite, so that releases follow one another. A
transaction that reads sees one state and blocks no other process. Salt, anchor and locks stay on
each machine. The server therefore has neither the keys of subjects nor the salt of their hashes,
and each machine recovers its own unfinished releases, whose files it has.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from operator import lt
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.errors import RequestError
from lexveil.io.databases.address import Address, read_address
from lexveil.io.databases.postgresql import GONE, connection_of
from lexveil.release.ledger.amounts import MOST
from lexveil.release.ledger.balances import edited
from lexveil.release.ledger.connection import Mac, Parameters
from lexveil.release.ledger.database import (
    APPLICATION,
    SCHEMA,
    TRY,
    Database,
    Store,
    begin_chain,
    text,
)
from lexveil.release.ledger.spool import Spool

PLACE = "lexveil_ledger"  # the schema
SESSION = (
    f"set search_path to {PLACE}",
    "set synchronous_commit to on",  # a commit survives a power cut
    "set work_mem to '128MB'",
    "set jit to off",
    # There are about as many subjects as rows, so sorting is faster than hashing and takes less
    # memory.
    "set enable_hashagg to off",
    f"set lock_timeout to '{TRY:g}s'",
)
KINDS = {
    "release": pa.int32(),
    "document": pa.int64(),
    "nano": pa.int64(),
    "subject": pa.binary(),
    "mac": pa.binary(),
    "key": pa.string(),
    "is_new": pa.bool_(),
}
# this process computes one batch while the server reads the next batch
SMALL = {"adbc.postgresql.batch_size_hint_bytes": "500000"}
SEALED = pa.schema([(name, KINDS[name]) for name in ("subject", "nano", "mac", "is_new")])
REASONS = {
    "55P03": "another process has locked the ledger; try again later",
    "57": "the server shut down or cancelled the statement, and nothing was changed; try again",
    "53": "the server's disk, memory or connections are exhausted, and nothing was changed",
    "25": "the server is read-only; give the address of a server that is not a standby",
    "42501": f"the user may not use the schema {PLACE}; grant the permission, or name the "
    "user who created the ledger",
    "42": f"the ledger is damaged, because tables of the schema {PLACE} were changed; "
    "restore its last copy",
    "3D": "there is no such database; create it first",
    "22": "the ledger is damaged, or a key has a character that PostgreSQL cannot store",
    "23": "the ledger is damaged; `lexveil ledger verify` says where",
}


class Answers(list[Any]):
    """Rows of a query result, all in memory."""

    def fetchone(self) -> Any:
        """Remove and return the next row, or return None if no row is left."""
        return self.pop(0) if self else None

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self


class ServerConnection:
    """A connection to PostgreSQL that runs the SQL of the ledger, with the interface
    ``Connection``.
    """

    mac: Callable[[object, object], bytes | None]
    # without it, indexes of the target tables take three times as long
    in_order: ClassVar = " order by subject"

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.in_transaction = False

    def execute(self, sql: str, parameters: Parameters = (), /) -> Answers:
        """Run one SQL statement, and return all rows of its result."""
        with self._connection.cursor() as cursor:
            cursor.execute(*_numbered(sql, parameters))
            rows = Answers(cursor.fetchall() if cursor.description else ())
        self.in_transaction = {"begin": True, "commit": False, "rollback": False}.get(
            sql.split(maxsplit=1)[0], self.in_transaction
        )
        return rows

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Any]:  # noqa: D102
        spool = self._read(sql, parameters)
        return (
            row
            for batch in spool
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )

    def _read(self, sql: str, parameters: Parameters = ()) -> Spool:
        """Read a large query result completely into a temporary file, so that the connection is
        free for other statements.
        """
        query, values = _numbered(sql, parameters)
        # with parameters, the driver would hold all rows in memory
        if all(isinstance(value, int) for value in values or ()):
            numbers = list(map("({})".format, values or ()))
            query = re.sub(r"\$(\d+)", lambda found: numbers[int(found[1]) - 1], query)
            values = None
        with self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**SMALL)
            cursor.execute(query, values)
            reader = cursor.fetch_record_batch()
            return Spool(reader.schema, self._arriving(reader))

    def _arriving(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        from adbc_driver_manager import AdbcStatusCode

        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            # errors of the server while rows are read do not have the driver's error classes
            except (OSError, pa.ArrowException) as error:
                raise self._connection.OperationalError(
                    str(error), status_code=AdbcStatusCode.IO
                ) from None
            yield batch

    def scratch(self, table: str, columns: str) -> None:  # noqa: D102
        self.execute(f"drop table if exists pg_temp.{table}")
        self.execute(f"create temp table {table} ({columns})")

    def fill(  # noqa: D102
        self, table: str, columns: str, parts: Iterable[Sequence[Any]], temporary: bool = True
    ) -> None:
        schema = pa.schema([(name, KINDS[name]) for name in columns.split(", ")])
        raised: list[Exception] = []

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for part in parts:
                    yield pa.record_batch(list(map(pa.array, part, schema.types)), schema=schema)
            # keep a reference to it, because otherwise the driver would report a failed read
            except Exception as error:
                raised.append(error)
                raise

        try:
            with self._connection.cursor() as cursor:
                reader = pa.RecordBatchReader.from_batches(schema, batches())
                cursor.adbc_ingest(table, reader, mode="append", temporary=temporary)
        except Exception:
            if raised:
                raise raised[0] from None
            raise

    def seal(self, mac: Mac, spent: str, release: int | None) -> None:  # noqa: D102
        made = (
            f"select subject, balance, mac, paid, cast(least(({spent}), {MOST}) as "
            "bigint), mac is null from charges"
        )
        charges = self._read(made)
        sealed = Spool(SEALED)
        last = b""

        def paying() -> Iterator[tuple[Any, ...]]:
            nonlocal last
            for batch in filter(len, charges):
                columns = [column.to_pylist() for column in batch.columns[:5]]
                # A scan returns a temporary table in the order in which it was written, and sorting
                # it again takes long. The order differs only if rows have unusual sizes or if a
                # subject was charged twice.
                if not all(map(lt, [last, *columns[0]], columns[0])):
                    raise edited(1)
                last = columns[0][-1]
                subjects, balance, _, paid, _, is_new = batch.columns
                macs = pa.array(list(map(mac, *columns)), pa.binary())
                sealed.add(
                    pa.record_batch([subjects, pc.add(balance, paid), macs, is_new], schema=SEALED)
                )
                pays = batch.filter(pc.greater(paid, 0))
                yield pa.repeat(release or 0, len(pays)), pays["subject"], pays["paid"]

        # The server writes charges while this process computes keyed hashes. New balances follow.
        if release is None:
            deque(paying(), 0)
        else:
            self.fill("spends", "release, subject, nano", paying(), temporary=False)
        new = pc.field("is_new") & pc.field("mac").is_valid()
        old = ~pc.field("is_new")
        for table, which, names in (
            ("balances", new, SEALED.names[:3]),
            ("sealed", old, SEALED.names),
        ):
            parts = (batch.filter(which).select(names).columns for batch in sealed)
            self.fill(table, ", ".join(names), parts, temporary=table == "sealed")

    def analyze(self, table: str) -> None:  # noqa: D102
        self.execute(f"analyze {table}")

    def close(self) -> None:
        """Close the connection, and roll back uncommitted changes."""
        self._connection.close()


def _numbered(sql: str, parameters: Parameters) -> tuple[str, tuple[Any, ...] | None]:
    """Replace the placeholders ? or $name in SQL by $1, $2 and so on, and return the SQL and the
    parameters in that order.
    """
    if not parameters:
        return sql, None
    names: list[str] = list(parameters) if isinstance(parameters, Mapping) else []
    values = tuple(parameters.values()) if isinstance(parameters, Mapping) else tuple(parameters)
    count = iter(range(1, len(values) + 1))
    number = lambda found: f"${names.index(found[1]) + 1 if names else next(count)}"  # noqa: E731
    return re.sub(r"\$([a-z]\w*)" if names else r"\?", number, sql), values


class ServerDatabase(Database):
    """One connection to a ledger's tables in PostgreSQL."""

    is_shared: ClassVar = True
    to_write: ClassVar[tuple[str, ...]] = (
        "begin isolation level read committed",
        "lock table entries in exclusive mode",
    )
    to_read: ClassVar[tuple[str, ...]] = ("begin isolation level repeatable read read only",)

    def __init__(self, address: Address, patience: float) -> None:
        connection = connection_of(address, autocommit=True)
        self.name = address.shown
        self._patience = patience
        self.guard = None
        self.failure = connection.Error
        self.con = ServerConnection(connection)
        with self.errors():
            for statement in SESSION:
                self.con.execute(statement)

    def form(self) -> str | None:
        """Return the format version of the ledger, or None if there is no ledger."""
        comment = f"select obj_description(to_regnamespace('{PLACE}')::oid, 'pg_namespace')"
        return next((form for (form,) in self.rows(comment)), None)

    def damage(self) -> Iterator[str]:
        """Return an empty iterator: no damage is searched for, because the server checks its own
        files.
        """
        return iter(())

    def is_busy(self, error: Any) -> bool:  # noqa: D102
        return bool(error.sqlstate == "55P03")

    def reason(self, error: Any) -> str:
        """Describe a database error by its code only, because the server's message may contain a
        subject's key.
        """
        state = error.sqlstate or ""
        if not state and GONE.search(str(error)):
            return (
                "the connection was lost; the unfinished release is recovered when this "
                "machine opens the ledger again"
            )
        why = next(
            (reason for prefix, reason in REASONS.items() if state.startswith(prefix)),
            "the server refuses the statement",
        )
        return f"{why} (SQLSTATE {state or 'unknown'})"


class ServerStore(Store):
    """Storage of a ledger's tables in the schema ``PLACE`` of a PostgreSQL database."""

    def __init__(self, address: str) -> None:
        self._address = read_address(address)
        if self._address.engine != "postgresql":
            raise RequestError(
                "lexveil.toml: ledger.database must be postgresql://HOST/DATABASE, or be "
                "omitted to use a file"
            )
        self.name = self._address.shown
        self._is_there = False

    def exists(self) -> bool:  # noqa: D102
        if not self._is_there:
            with closing(ServerDatabase(self._address, TRY)) as database:
                self._is_there = database.form() is not None
        return self._is_there

    def open(self, patience: float, read_only: bool = False) -> Database:  # noqa: ARG002, D102
        database = ServerDatabase(self._address, patience)
        try:
            database.check_form(database.form())
        except BaseException:
            database.close()
            raise
        return database

    def make(self, meta: Mapping[str, str]) -> None:  # noqa: D102
        with closing(ServerDatabase(self._address, TRY)) as database, database.errors():
            con = database.con
            con.execute("begin")
            con.execute("select pg_advisory_xact_lock(?)", (APPLICATION,))
            if database.form() is not None:
                raise RequestError(
                    f"{self.name}: another machine has just created the ledger; copy the "
                    "salt from that machine"
                )
            con.execute(f"create schema {PLACE}")
            con.execute(f"comment on schema {PLACE} is '{SCHEMA}'")
            con.execute("create domain blob as bytea")
            con.execute(
                f"do $make$ begin {text('ledger/schema').replace(' without rowid', '')} end $make$"
            )
            # store the rows of a release together
            con.execute("alter table spends drop constraint spends_pkey")
            con.execute(
                "create index spends_of_release on spends using brin (release) with "
                "(autosummarize = on)"
            )
            # leave free space, so that updates are made in place
            con.execute("alter table balances set (fillfactor = 50)")
            begin_chain(con, meta)
            con.execute("commit")
