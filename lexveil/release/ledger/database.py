"""Storage of a ledger's tables in SQLite. A commit survives a power cut, and errors are reported in
plain words.

The module for PostgreSQL (``lexveil.release.ledger.postgresql``) runs the same SQL in the same
steps.

The database uses a rollback journal, not WAL: between transactions the ledger is one file, so that
a copy of this file is complete. Without WAL, ``synchronous = full`` leaves a moment in which a
power cut restores the removed journal and undoes a commit; ``extra`` also syncs the folder. A
transaction that writes locks the whole database at once (``begin exclusive``), so that it does not
fail later because another process reads.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.release.ledger import chain
from lexveil.release.ledger.connection import Connection, Mac, Parameters
from lexveil.release.ledger.locks import sync

LOG = logger(__name__)

if TYPE_CHECKING:
    from lexveil.release.ledger.anchor import Anchor

T = TypeVar("T")

DATABASE = "ledger.sqlite"
APPLICATION = 0x4C58564C  # "LXVL" as a number, which identifies a ledger in the header of the file
SCHEMA = 2

TRY = 1.0  # seconds that SQLite itself waits for another process, before a message about the wait


REASONS = {
    (sqlite3.SQLITE_FULL,): "the disk is full and nothing was changed; free some space and "
    "try again",
    (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM): (
        "the ledger cannot be opened or written; its folder and its files must be writable"
    ),
    (sqlite3.SQLITE_NOTADB,): (
        "the file is not a ledger (no SQLite database); restore the ledger's last copy, or "
        "name another folder"
    ),
    (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
    ): (
        "the ledger is damaged; `lexveil ledger verify` says where. Restore its last copy; "
        "spending that the copy lacks took place nevertheless"
    ),
    (sqlite3.SQLITE_IOERR,): (
        "the ledger cannot be read or written (input/output error), and nothing was "
        "changed; check whether the disk is full or missing"
    ),
}


def text(name: str) -> str:
    """Return the SQL text of the file sql/NAME.sql."""
    return paths.query(name).read_text(encoding="utf-8")


class SqliteConnection(sqlite3.Connection):
    """Connection to SQLite through the standard library, with the interface ``Connection``."""

    mac: Callable[[object, object], bytes | None]
    in_order: ClassVar = ""  # the primary key sorts the rows, so an `order by` would sort twice

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Any]:  # noqa: D102
        return self.execute(sql, parameters)

    def scratch(self, table: str, columns: str) -> None:  # noqa: D102
        self.execute(f"drop table if exists temp.{table}")
        # Store rows in the order in which they are written and read, so that no step sorts them.
        self.execute(f"create temp table {table} ({columns}, primary key (subject)) without rowid")

    def fill(self, table: str, columns: str, parts: Iterable[Sequence[Any]]) -> None:  # noqa: D102
        marks = ", ".join("?" * len(columns.split(", ")))
        for part in parts:
            self.executemany(
                f"insert into temp.{table} ({columns}) values ({marks})", zip(*part, strict=True)
            )

    def seal(self, mac: Mac, spent: str, release: int | None) -> None:  # noqa: D102
        # one statement takes half the time of reading the rows and writing them back
        self.create_function("sealed_mac", 5, mac)
        made = (
            f"subject, balance + paid, sealed_mac(subject, balance, mac, paid, ({spent})), "
            "mac is null"
        )
        self.execute(f"insert into temp.sealed select {made} from temp.charges order by subject")
        if release is not None:
            self.execute(
                "insert into spends select ?, subject, paid from temp.charges where paid > 0",
                (release,),
            )

    def analyze(self, table: str) -> None:  # noqa: D102
        pass  # SQLite plans well without statistics


class Store:
    """Storage of a ledger's tables, which opens or creates them. This base class uses an SQLite
    file in the ledger's folder.

    Attributes:
        name: name of the storage in messages.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / DATABASE
        self.name = str(self.file)

    def exists(self) -> bool:
        """Return whether the ledger's tables have been created."""
        return self.file.exists()

    def open(self, patience: float, read_only: bool = False) -> Database:
        """Open the ledger's tables, and return a connection to them.

        Args:
            patience: seconds to wait while other processes lock them.
            read_only: whether the connection only reads.

        Raises:
            RequestError: if the storage is not a ledger, is a ledger of another version, or cannot
                be read.
        """
        return Database(self.file, patience, read_only)

    def make(self, meta: Mapping[str, str]) -> None:
        """Create all tables of a new ledger in one transaction."""
        partial = self.file.with_name(f".{self.file.name}.partial")
        partial.unlink(missing_ok=True)
        try:
            with closing(
                sqlite3.connect(partial, isolation_level=None, factory=SqliteConnection)
            ) as con:
                durable(con)
                con.execute(f"pragma application_id = {APPLICATION}")
                con.execute(f"pragma user_version = {SCHEMA}")
                con.executescript(text("ledger/schema"))
                begin_chain(con, meta)
        except sqlite3.Error as error:
            raise RequestError(
                f"{self.file}: the ledger cannot be created ({error}); check whether the "
                "disk is full"
            ) from None
        partial.chmod(0o600)
        os.replace(partial, self.file)
        sync(self.file.parent)


def begin_chain(con: Connection, meta: Mapping[str, str]) -> None:
    """Write the metadata and the first log entry of a new ledger."""
    for row in meta.items():
        con.execute("insert into meta values (?, ?)", row)
    chain.append(con, None, "created", {**meta, "schema": SCHEMA})


class Database:
    """One connection to a ledger's tables, for one thread of one process.

    Attributes:
        name: name of the storage in messages.
        is_shared: whether the tables also have releases of other machines, whose files are on those
            machines.
        guard: the anchor against which each change is checked.
    """

    is_shared: ClassVar = False
    failure: type[Exception] = sqlite3.Error
    to_write: ClassVar[tuple[str, ...]] = ("begin exclusive",)
    to_read: ClassVar[tuple[str, ...]] = (
        "begin",
        "select 1 from sqlite_master limit 1",
    )  # the second statement starts the snapshot
    con: Connection

    def __init__(self, file: Path, patience: float, read_only: bool = False) -> None:
        """Open an existing SQLite database; see ``Store.open``."""
        self.name = str(file)
        self._patience = patience
        self.guard: Anchor | None = None
        with self.errors():
            self.con = sqlite3.connect(
                f"{file.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}",
                uri=True,
                isolation_level=None,
                timeout=min(TRY, patience),
                factory=SqliteConnection,
            )
            try:
                self._check()
            except BaseException:
                self.con.close()
                raise

    def _check(self) -> None:
        application = self.rows("pragma application_id")[0][0]
        version = self.rows("pragma user_version")[0][0]
        if application != APPLICATION:
            raise RequestError(
                f"{self.name}: the file is a database, but not a ledger of Lexveil; name "
                "another folder"
            )
        self.check_form(version)
        self._patiently(lambda: durable(self.con))

    def check_form(self, form: object) -> None:
        """Check that this version of Lexveil can read the format of the ledger."""
        if str(form) != str(SCHEMA):
            raise RequestError(
                f"{self.name}: another version of Lexveil wrote the ledger (format {form}, "
                f"this version reads format {SCHEMA}); use that version"
            )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block as one durable transaction: all of its changes are kept, or none.

        Raises:
            RequestError: if the ledger does not match its anchor.
        """
        with self.errors():
            self._begin(self.to_write)
            try:
                if self.guard is not None:
                    # No other process can continue before this transaction ends, so the anchor is
                    # not ahead of it.
                    self.guard.check(self.con, self.guard.mark())
                yield self.con
                last = chain.newest(self.con)
                self.con.execute("commit")
            except BaseException:
                self._roll_back()
                raise
            if self.guard is not None and last is not None:
                self.guard.write(last.seq, last.hash)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Read one state of the ledger in the block. SQLite's writers wait until its end."""
        with self.errors():
            try:
                self._begin(self.to_read)
                yield self.con
            finally:
                self._roll_back()

    def _begin(self, statements: Sequence[str]) -> None:
        def begin() -> None:
            try:
                for statement in statements:
                    self.con.execute(statement).fetchall()
            except BaseException:
                self._roll_back()
                raise

        self._patiently(begin)

    def _roll_back(self) -> None:
        if self.con.in_transaction:
            # report the first error, not the lost connection that follows from it
            with suppress(self.failure):
                self.con.execute("rollback")

    def damage(self) -> Iterator[str]:
        """Return descriptions of the damage that the engine detects. SQLite names tables and rows,
        but no content.
        """
        return (
            str(finding)
            for (finding,) in self.con.execute("pragma integrity_check(20)")
            if finding != "ok"
        )

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Any]:
        """Run an SQL query with a small result, and return all of its rows."""
        with self.errors():
            return self._patiently(lambda: self.con.execute(sql, parameters).fetchall())

    def close(self) -> None:
        """Close the connection."""
        self.con.close()

    def _patiently(self, action: Callable[[], T]) -> T:
        end = time.monotonic() + self._patience
        is_waiting = False
        while True:
            try:
                return action()
            except self.failure as error:
                if not self.is_busy(error):
                    raise
                if time.monotonic() >= end:
                    raise RequestError(
                        f"{self.name}: another process has held the ledger for more than "
                        f"{self._patience:g} s; "
                        "try again when it has ended"
                    ) from None
                if not is_waiting:
                    LOG.info(f"waiting for another process that uses the ledger {self.name}")
                    is_waiting = True

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert errors of the database engine in the block to errors with a plain message."""
        try:
            yield
        except self.failure as error:
            raise RequestError(f"{self.name}: {self.reason(error)}") from None

    def is_busy(self, error: Any) -> bool:
        """Return whether a database error means that another process holds a lock."""
        return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def reason(self, error: Any) -> str:
        """Describe an error of the database engine in plain words."""
        code = _code(error)
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return next(
            (reason for codes, reason in REASONS.items() if code in codes), f"SQLite reports {name}"
        )


def durable(con: Connection) -> None:
    """Configure an SQLite connection so that a commit survives a power cut."""
    con.execute("pragma journal_mode = delete")
    con.execute("pragma synchronous = extra")
    con.execute("pragma threads = 2")  # number of additional threads for sorting
    # in kB; with this cache a large release rarely writes a page twice
    for schema in ("main", "temp"):
        con.execute(f"pragma {schema}.cache_size = -65536")


def _code(error: object) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
