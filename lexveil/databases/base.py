"""What the engines share: a database in one transaction, its rows, and faults that quote the query
alone.
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

from lexveil.databases.address import Address

QUERY = "the query"  # what the rows of a query are called in messages
BATCH = 2_000  # rows that are held at a time
LOCK_SECONDS = 30  # to wait for a lock, unless the client's own settings say how long
Types = Mapping[str, str]  # of columns, as a database calls them
RECORDS = "lexveil_records"  # the table of the records of what was written


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gives.

    Attributes:
        batches: to iterate over once; each holds a bounded number of bytes or rows.
        kinds: what the database calls the type of each column for which Arrow's type does not say
            it all.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    kinds: Types


class OpenDatabase(ABC):
    """A database in a transaction, which is rolled back unless it is committed.

    Attributes:
        record_columns: of the table of records, beside the table's name and the release's.
        record_values: what is put into them, by number.
    """

    record_columns: ClassVar[str]
    record_values: ClassVar[str]

    def __init__(self, address: Address, connection: Any, cursor: Any) -> None:
        self.address, self.connection, self.cursor = address, connection, cursor

    @abstractmethod
    def rows(self, query: str) -> Rows:
        """What a query gives; it can change nothing.

        Raises:
            RequestError: if it cannot be run; also while batches are read.
        """

    @abstractmethod
    def types(self, table: Sequence[str]) -> dict[str, str] | None:
        """The columns of a table and their types as the database calls them; None if it is not
        there.
        """

    @abstractmethod
    def insert(
        self, table: Sequence[str], batches: pa.RecordBatchReader, types: Types, is_new: bool
    ) -> None:
        """Put rows into a table, which is made if it ``is_new``.

        Args:
            types: of columns, if it is not that of Arrow.
        """

    def keep_record(self, table: Sequence[str], release: str, record: str) -> None:
        """Put a record into the table of records, which stands beside the table."""
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
    """Connect to a database; what goes wrong there is a ``RequestError`` of one line.

    Args:
        quotables: what messages may quote: the query, or the names of tables and columns.
        to_write: refuse one that can only be read; a file that is not there is made.
    """
    engine = importlib.import_module(f"{__package__}.{address.engine}")
    return cast(
        AbstractContextManager[OpenDatabase],
        engine.connected(address, " ".join(quotables), to_write),
    )


def quoted(*path: str) -> str:
    """A name as SQL has it, with those of what it is in before it."""
    return ".".join('"' + identifier.replace('"', '""') + '"' for identifier in path)


def listed(columns: Sequence[str]) -> str:
    """Names of columns as SQL has them."""
    return ", ".join(map(quoted, columns))


def stripped(sql: str) -> str:
    """One statement without what ends it."""
    return sql.strip().rstrip(";").rstrip()


def quotable(message: str, query: str) -> str:
    """What an engine says of a query, of which it may quote the query alone: other quotations are
    of the data.
    """
    quotation = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
    line = (message.splitlines() or [""])[0]
    shown_line = quotation.sub(
        lambda quoted: quoted[0] if quoted[0][1:-1] in query else "(not shown)", line
    )
    return shown_line[:300]


def spool_query(address: Address, sql: str, out: Path | IO[bytes]) -> Mapping[str, str]:
    """Write the rows of a query to a Parquet file.

    A request reads its input twice, and its budget is spent in between. A snapshot that is held
    open for that long keeps a server from clearing up, and a connection that breaks in the second
    pass would spend the budget for nothing. So a query is read once, at the start, in one
    transaction and in bounded memory.

    Args:
        out: readable by its owner alone.

    Returns:
        What the database calls the type of each column for which Arrow's does not say it all.

    Raises:
        RequestError: if the query cannot be read, or not to its end.
    """
    query = stripped(sql)
    with connected(address, [query], to_write=False) as database:
        rows = database.rows(query)
        # Not compressed: it is read twice and then gone.
        with pq.ParquetWriter(out, rows.schema, compression="none", use_dictionary=False) as writer:
            for batch in rows.batches:
                writer.write_batch(batch, row_group_size=BATCH)
    return rows.kinds
