"""Common base of the database engines: a database in one transaction, its rows, and error messages
that quote only the query.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.io.databases.address import Address

QUERY = "the query"  # name of the rows of a query in messages
ROWS_AT_A_TIME = 2_000  # number of rows in memory at once
LOCK_SECONDS = 30  # timeout of a lock, unless the client's own settings have one
Types = Mapping[str, str]  # the database's type name of each column
RECORDS = "lexveil_records"  # name of the table with the privacy records of written tables


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a database query returns.

    Attributes:
        batches: the rows in batches, which can be iterated once; each batch has a bounded number of
            bytes or rows.
        kinds: the database's type name of each column whose Arrow type is less exact.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    kinds: Types


class OpenDatabase(ABC):
    """An open database in a transaction. The transaction is rolled back unless it is committed.

    Attributes:
        record_columns: columns of the table of records, without the columns for the names of the
            table and of the release.
        record_values: SQL of the inserted values, with numbered parameters.
    """

    record_columns: ClassVar[str]
    record_values: ClassVar[str]

    def __init__(self, address: Address, connection: Any, cursor: Any) -> None:
        self.address = address
        self.connection = connection
        self.cursor = cursor

    @abstractmethod
    def rows(self, query: str) -> Rows:
        """Return the rows of a query. The query cannot change the database.

        Raises:
            RequestError: if the query cannot be run. The error may also occur while the batches are
                read.
        """

    @abstractmethod
    def types(self, table: Sequence[str]) -> dict[str, str] | None:
        """Return the columns of a table with the database's names of their types. The result is
        None if there is no such table.
        """

    @abstractmethod
    def insert(
        self, table: Sequence[str], batches: pa.RecordBatchReader, types: Types, is_new: bool
    ) -> None:
        """Insert rows into a table. If ``is_new``, create the table first.

        Args:
            types: database types of the columns that should not have the type that Arrow implies.
        """

    def keep_record(self, table: Sequence[str], release: str, record: str) -> None:
        """Insert a privacy record into the table of records, which is in the same schema as the
        table ``table``.
        """
        records = [*table[:-1], RECORDS]
        if self.types(records) is None:
            self.cursor.execute(
                f"create table {quoted(*records)} "
                f"({self.record_columns}, table_name text not null, release text not null)"
            )
        self.cursor.execute(
            f"insert into {quoted(*records)} (table_name, release, record) values "
            f"({self.record_values})",
            (table[-1], release, record),
        )


def connected(
    address: Address, quotables: Collection[str], *, to_write: bool
) -> AbstractContextManager[OpenDatabase]:
    """Connect to a database. An error of the database becomes a ``RequestError`` of one line.

    Args:
        quotables: texts that messages may quote: the query, or the names of tables and columns.
        to_write: whether rows will be written. If so, a read-only database is refused, and a
            missing file is created.
    """
    engine = importlib.import_module(f"{__package__}.{address.engine}")
    return cast(
        AbstractContextManager[OpenDatabase],
        engine.connected(address, " ".join(quotables), to_write),
    )


def quoted(*path: str) -> str:
    """Quote an identifier for SQL. The identifier may have the names of a schema or table before
    it.
    """
    return ".".join('"' + identifier.replace('"', '""') + '"' for identifier in path)


def listed(columns: Sequence[str]) -> str:
    """Return the quoted names of columns for SQL, separated by commas."""
    return ", ".join(map(quoted, columns))


def stripped(sql: str) -> str:
    """Return one SQL statement without its final semicolon."""
    return sql.strip().rstrip(";").rstrip()


def quotable(message: str, query: str) -> str:
    """Return a database's error message without the quotations that do not come from the query,
    because such quotations may be data.
    """
    quotation = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
    line = (message.splitlines() or [""])[0]
    shown_line = quotation.sub(
        lambda quoted: quoted[0] if quoted[0][1:-1] in query else "(not shown)", line
    )
    return shown_line[:300]


def spool_query(address: Address, sql: str, out: Path | IO[bytes]) -> Mapping[str, str]:
    """Write the rows of a query to a Parquet file.

    A request reads its input twice and spends its budget in between. A snapshot held open for that
    long would keep a server from cleaning up, and a broken connection in the second pass would
    waste the budget. The query is therefore read once, at the start, in one transaction and in
    bounded memory.

    Args:
        out: a file that only its owner can read.

    Returns:
        The database's type name of each column whose Arrow type is less exact.

    Raises:
        RequestError: if the query fails, or its rows cannot be read to the end.
    """
    query = stripped(sql)
    with connected(address, [query], to_write=False) as database:
        rows = database.rows(query)
        # Do not compress the file, because it is read twice and then removed.
        with pq.ParquetWriter(out, rows.schema, compression="none", use_dictionary=False) as writer:
            for batch in rows.batches:
                writer.write_batch(batch, row_group_size=ROWS_AT_A_TIME)
    return rows.kinds
