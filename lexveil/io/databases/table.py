"""A database table as the target of rewritten rows, which are inserted in one transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import LexveilError, RequestError, option
from lexveil.io.databases.address import Address
from lexveil.io.databases.base import RECORDS, ROWS_AT_A_TIME, OpenDatabase, connected, quoted
from lexveil.io.formats.messages import name

IfExists = Literal["fail", "append", "replace"]


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A database table that rewritten rows are inserted into.

    Attributes:
        path: name of the table, with the name of its schema before it if one is given.
        if_exists: treatment of an existing table. ``fail`` refuses the table, ``append`` adds rows
            to it, and ``replace`` deletes its rows in the same transaction. The table's columns,
            permissions and indices stay.
    """

    address: Address
    path: tuple[str, ...]
    if_exists: IfExists = "fail"

    @classmethod
    def named(cls, address: Address, table: str, if_exists: IfExists = "fail") -> Self:
        """Return a table by its name.

        Raises:
            RequestError: if the name is not valid.
        """
        path = tuple(table.split("."))
        most = 2 if address.engine == "postgresql" else 1
        if len(path) > most or not all(re.fullmatch(r"[^\W\d]\w{0,62}", part) for part in path):
            raise RequestError(
                f"{option('table')}: write TABLE, or for PostgreSQL SCHEMA.TABLE, with "
                "letters, digits and _ only"
            )
        return cls(address, path, if_exists)

    @property
    def name(self) -> str:
        """Name of the table, for messages and file names."""
        return ".".join(self.path)

    def stamped(self, stamp: str) -> DatabaseTable:
        """Return this table with ``stamp`` (such as a date) appended to its name."""
        return replace(self, path=(*self.path[:-1], f"{self.path[-1]}_{stamp.replace('-', '_')}"))

    def check(self, columns: Sequence[str] = ()) -> None:
        """Check that the table can be written, before any epsilon is spent.

        Args:
            columns: columns of the rows, once they are known.

        Raises:
            RequestError: if the table exists although it must not, or lacks a column, or if the
                database cannot be written.
        """
        if (
            self.address.path is not None
            and not self.address.path.exists()
            and self.address.path.parent.is_dir()
        ):
            return  # an SQLite file that will be created
        with connected(self.address, self.path, to_write=True) as database:
            self._existing(database, columns)

    def write(self, rows: IO[bytes], kinds: Mapping[str, str], release: str, record: str) -> None:
        """Insert the rows of a Parquet file into the table, and the privacy record into the table
        ``lexveil_records``. If an insertion fails, nothing is inserted.

        Args:
            rows: the Parquet file.
            kinds: type names of columns in the source database; empty if the source has another
                engine. An existing table keeps its own types.
            release: id of the release in the ledger; "" for an experiment.
            record: the privacy record.

        Raises:
            LexveilError: if an insertion fails; the database is then unchanged.
        """
        rows.seek(0)
        file = pq.ParquetFile(rows, pre_buffer=False)  # by default, Arrow keeps all data in memory
        batches = pa.RecordBatchReader.from_batches(
            file.schema_arrow, file.iter_batches(ROWS_AT_A_TIME)
        )
        columns = batches.schema.names
        try:
            with connected(
                self.address, [*self.path, *columns, *kinds.values(), RECORDS], to_write=True
            ) as database:
                types = self._existing(database, columns)
                if types is not None and self.if_exists == "replace":
                    database.cursor.execute(f"delete from {quoted(*self.path)}")
                database.insert(
                    self.path, batches, kinds if types is None else types, is_new=types is None
                )
                database.keep_record(self.path, release, record)
                database.connection.commit()
        # the noise has been drawn, so the error must say what became of the release
        except RequestError as error:
            raise LexveilError(
                f"{error}; the table is unchanged and nothing was released"
            ) from None

    def _existing(self, database: OpenDatabase, columns: Sequence[str]) -> dict[str, str] | None:
        """Return the columns of the existing table with their types. The result is None if the
        table does not exist.
        """
        types = database.types(self.path)
        if types is None:
            return None
        where = f"{self.address.shown}: the table {self.name}"
        if self.if_exists == "fail":
            raise RequestError(
                f"{where} exists already; choose another name, or add {option('if_exists')} append"
            )
        if missing := [column for column in columns if column not in types]:
            raise RequestError(
                f"{where} has no column {name(missing[0])}; remove the column from the query"
            )
        return types
