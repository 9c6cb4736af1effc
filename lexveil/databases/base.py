"""What the engines share: rows of a query, and faults that quote the query alone."""

from __future__ import annotations

import importlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lexveil.databases.address import Address
from lexveil.errors import LexveilError, RequestError, option
from lexveil.formats.messages import duplicate_column, name

QUERY = "the query"  # what the rows of a query are called in messages
BATCH = 2_000  # rows that are held at a time
LOCK_SECONDS = 30  # to wait for a lock, unless the client's own settings say how long
RECORDS = "lexveil_records"  # the table of the records of what was written


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gives.

    Attributes:
        batches: to iterate over once; each holds a bounded number of bytes or rows.
        kinds: what the database calls the type of each column for which Arrow's type does not say it all.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    kinds: Mapping[str, str]


def driver(module: str) -> Any:
    """Import a driver of the extra ``databases``.

    Raises:
        RequestError: naming the command that installs it, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise RequestError(
            f"this needs the package {module.partition('.')[0].replace('_', '-')}, which is not installed; "
            "`pip install 'lexveil[databases]'` brings the drivers of all databases"
        ) from None


def require_distinct(columns: list[str]) -> None:
    """See that a query names each of its columns once.

    Raises:
        RequestError: with the numbers of the first two that have the same name.
    """
    for number, column in enumerate(columns):
        if (first := columns.index(column)) < number:
            raise duplicate_column(QUERY, first, number)


def quoted(identifier: str) -> str:
    """A name as SQL has it."""
    return '"' + identifier.replace('"', '""') + '"'


def stripped(sql: str) -> str:
    """One statement without what ends it."""
    return sql.strip().rstrip(";").rstrip()


def quotable(message: str, query: str) -> str:
    """What an engine says of a query, of which it may quote the query alone: other quotations are of the data."""
    quotation = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
    line = (message.splitlines() or [""])[0]
    shown_line = quotation.sub(lambda quoted: quoted[0] if quoted[0][1:-1] in query else "(not shown)", line)
    return shown_line[:300]


def lost(address: Address, n_rows: int) -> RequestError:
    """The connection broke while rows were read."""
    return RequestError(
        f"{address.shown}: the connection was lost after {n_rows:,} rows; nothing was released or spent. See to the "
        "server and run it again"
    )


def taken(address: Address, table: str) -> RequestError:
    """The table to write is there."""
    return RequestError(
        f"{address.shown}: the table {table} exists already; choose another name, or say {option('if_exists')} append "
        f"or replace"
    )


def require_columns(address: Address, table: str, columns: Iterable[str], there: Container[str]) -> None:
    """See that a table to write into has all columns of the rows.

    Raises:
        RequestError: naming the first that it lacks.
    """
    if missing := [column for column in columns if column not in there]:
        raise RequestError(
            f"{address.shown}: the table {table} has no column {name(missing[0])}; leave it out of the query, or "
            "choose another table"
        )


def not_written(error: RequestError) -> LexveilError:
    """A fault while a table is written, when the noise has been drawn."""
    return LexveilError(f"{error}; the table is as it was and nothing was released")
