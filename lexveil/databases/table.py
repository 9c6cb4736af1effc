"""A table that rewritten rows are put into, all in one transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.databases.address import Address
from lexveil.databases.base import BATCH, not_written
from lexveil.databases.query import engine
from lexveil.errors import RequestError, option

IfExists = Literal["fail", "append", "replace"]


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of a database.

    Attributes:
        path: its name, after its schema's if one is given.
        if_exists: what becomes of rows that are in it: fail refuses a table that is there, append adds to them, replace
            deletes them in the same transaction; its columns, rights and indices stay.
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
            form = "TABLE or SCHEMA.TABLE" if most == 2 else "TABLE"
            raise RequestError(f"{option('table')}: give {form}, of letters, digits and _, beginning with a letter")
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
            RequestError: if not.
        """
        engine(self.address).check_table(self.address, self.path, self.if_exists, columns)

    def write(self, rows: IO[bytes], kinds: Mapping[str, str], release: str, record: str) -> None:
        """Put the rows of a Parquet file in, and their record into the table ``lexveil_records``, or nothing.

        Args:
            kinds: types of columns as the database that they come from calls them; empty if it is of another kind.
            release: the ledger's name of the release; "" of an experiment.

        Raises:
            LexveilError: if that fails; the database is as it was then.
        """
        rows.seek(0)
        file = pq.ParquetFile(rows, pre_buffer=False)  # else it keeps all that it has read
        batches = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(BATCH))
        try:
            engine(self.address).write_table(self.address, self.path, self.if_exists, batches, kinds, (release, record))
        except RequestError as error:
            raise not_written(error) from None
