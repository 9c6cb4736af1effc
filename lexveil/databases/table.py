"""A table that rewritten rows are put into, all in one transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.databases.address import Address
from lexveil.databases.base import BATCH, RECORDS, OpenDatabase, connected, quoted
from lexveil.errors import LexveilError, RequestError, option
from lexveil.formats.messages import name

IfExists = Literal["fail", "append", "replace"]


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of a database.

    Attributes:
        path: its name, after its schema's if one is given.
        if_exists: what becomes of rows that are in it: fail refuses a table that is there, append
            adds to them, replace deletes them in the same transaction; its columns, rights and
            indices stay.
    """

    address: Address
    path: tuple[str, ...]
    if_exists: IfExists = "fail"

    @classmethod
    def named(cls, address: Address, table: str, if_exists: IfExists = "fail") -> Self:
        """A table by its name.

        Raises:
            RequestError: if the name is none.
        """
        path = tuple(table.split("."))
        most = 2 if address.engine == "postgresql" else 1
        if len(path) > most or not all(re.fullmatch(r"[^\W\d]\w{0,62}", part) for part in path):
            raise RequestError(
                f"{option('table')}: give TABLE, in PostgreSQL or SCHEMA.TABLE, of letters, "
                "digits, _"
            )
        return cls(address, path, if_exists)

    @property
    def name(self) -> str:
        """The table, for messages and names of files."""
        return ".".join(self.path)

    def stamped(self, stamp: str) -> DatabaseTable:
        """The table under a name that says so."""
        return replace(self, path=(*self.path[:-1], f"{self.path[-1]}_{stamp.replace('-', '_')}"))

    def check(self, columns: Sequence[str] = ()) -> None:
        """See that it can be written, before anything is spent.

        Args:
            columns: of the rows, once they are known.

        Raises:
            RequestError: if it is there and must not be or lacks a column, or the database cannot
                be written.
        """
        if (
            self.address.path is not None
            and not self.address.path.exists()
            and self.address.path.parent.is_dir()
        ):
            return  # a file of SQLite that will be made
        with connected(self.address, self.path, to_write=True) as database:
            self._existing(database, columns)

    def write(self, rows: IO[bytes], kinds: Mapping[str, str], release: str, record: str) -> None:
        """Put the rows of a Parquet file in, and their record into the table ``lexveil_records``,
        or nothing.

        Args:
            kinds: types of columns as the database that they come from calls them; empty if it is
                of another kind. Of a table that is there, its own types count.
            release: the ledger's name of the release; "" of an experiment.

        Raises:
            LexveilError: if that fails; the database is as it was then.
        """
        rows.seek(0)
        file = pq.ParquetFile(rows, pre_buffer=False)  # else it keeps all that it has read
        batches = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(BATCH))
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
        except RequestError as error:  # the noise has been drawn
            raise LexveilError(
                f"{error}; the table is as it was and nothing was released"
            ) from None

    def _existing(self, database: OpenDatabase, columns: Sequence[str]) -> dict[str, str] | None:
        """The columns of the table with their types, if it is there."""
        types = database.types(self.path)
        if types is None:
            return None
        where = f"{self.address.shown}: the table {self.name}"
        if self.if_exists == "fail":
            raise RequestError(
                f"{where} exists already; choose another name, or say {option('if_exists')} append"
            )
        if missing := [column for column in columns if column not in types]:
            raise RequestError(
                f"{where} has no column {name(missing[0])}; leave it out of the query"
            )
        return types
