"""SQLite, so that what is committed outlives a power cut, and what goes wrong is said in words.

A rollback journal, not WAL: between transactions the ledger is one file, so that a copy of it is all of it. Without WAL
``synchronous = full`` leaves a moment in which a power cut brings the removed journal back and undoes what was
committed; ``extra`` also syncs the folder. Writers take the whole database at once (``begin exclusive``): nobody is
told in the middle of a transaction that another is reading.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lexveil import paths
from lexveil.errors import RequestError
from lexveil.ledger import chain

if TYPE_CHECKING:
    from lexveil.ledger.anchor import Anchor

T = TypeVar("T")

APPLICATION = 0x4C58564C  # "LXVL", in the header of the file
SCHEMA = 2

TRY = 1.0  # seconds that SQLite itself waits for another process, before we say that we wait


REASONS = {
    (sqlite3.SQLITE_FULL,): "the disk is full; nothing was changed. Free some space and try again",
    (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM): (
        "cannot be opened or written; the ledger's folder and its files must be writable"
    ),
    (sqlite3.SQLITE_NOTADB,): (
        "is not a ledger (no SQLite database); bring its last copy back, or name another folder"
    ),
    (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH): (
        "is damaged; `lexveil ledger verify` says where. Bring its last copy back: what is missing in it "
        "since then was spent all the same"
    ),
    (sqlite3.SQLITE_IOERR,): (
        "cannot be read or written (input/output error); is the disk full or gone? Nothing was changed"
    ),
}


def text(name: str) -> str:
    """The SQL of sql/NAME.sql."""
    return paths.query(name).read_text(encoding="utf-8")


class Database:
    """One connection to a ledger's database, for one thread of one process."""

    def __init__(self, file: Path, patience: float, read_only: bool = False) -> None:
        """Open an existing database.

        Args:
            patience: seconds to wait while other processes hold it.

        Raises:
            RequestError: if it is no ledger, of another version, or cannot be read.
        """
        self.file, self._patience = file, patience
        self.guard: Anchor | None = None
        with self.errors():
            self.con = sqlite3.connect(
                f"{file.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}",
                uri=True,
                isolation_level=None,
                timeout=min(TRY, patience),
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
            raise RequestError(f"{self.file}: is a database, but no ledger of Lexveil; name another folder")
        if version != SCHEMA:
            raise RequestError(
                f"{self.file}: was written by another Lexveil (form {version}, this one knows {SCHEMA}); use that one"
            )
        self._patiently(lambda: durable(self.con))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that the block does, or none of it; durable when it ends.

        Raises:
            RequestError: if the ledger is not the one that its anchor tells of.
        """
        with self.errors():
            self._patiently(lambda: self.con.execute("begin exclusive"))
            try:
                if self.guard is not None:
                    self.guard.check(self.con)
                yield self.con
                last = chain.newest(self.con)
                self.con.execute("commit")
            except BaseException:
                if self.con.in_transaction:
                    self.con.execute("rollback")
                raise
            if self.guard is not None and last is not None:
                self.guard.write(last.seq, last.hash)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the ledger; writers wait so long."""
        with self.errors():
            self.con.execute("begin")
            try:
                self.rows("select 1 from sqlite_master limit 1")  # only now is it one state
                yield self.con
            finally:
                if self.con.in_transaction:
                    self.con.execute("rollback")

    def rows(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[Any]:
        """All rows of a small result."""
        with self.errors():
            return self._patiently(lambda: self.con.execute(sql, parameters).fetchall())

    def close(self) -> None:
        """Let go of the file."""
        self.con.close()

    def _patiently(self, action: Callable[[], T]) -> T:
        end, is_waiting = time.monotonic() + self._patience, False
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if time.monotonic() >= end:
                    raise RequestError(
                        f"{self.file}: another process has held the ledger for more than {self._patience:g} s; "
                        "try again when it has ended"
                    ) from None
                if not is_waiting:
                    print(f"waiting for another process that uses the ledger {self.file}", file=sys.stderr, flush=True)
                    is_waiting = True

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what SQLite reports into words."""
        try:
            yield
        except sqlite3.Error as error:
            raise RequestError(f"{self.file}: {_reason(error)}") from None


def durable(con: sqlite3.Connection) -> None:
    """Set up a connection so that a commit outlives a power cut."""
    con.execute("pragma journal_mode = delete")
    con.execute("pragma synchronous = extra")
    for schema in ("main", "temp"):  # kB: what a large release changes seldom goes to disk twice
        con.execute(f"pragma {schema}.cache_size = -65536")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _reason(error: sqlite3.Error) -> str:
    code = _code(error)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return next((reason for codes, reason in REASONS.items() if code in codes), f"SQLite reports {name}")
