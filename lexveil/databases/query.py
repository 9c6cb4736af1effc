"""The rows of a query in a private file.

A request reads its input twice, and its budget is spent in between. A snapshot that is held open for that long keeps a
server from clearing up, and a connection that breaks in the second pass would spend the budget for nothing. So a query
is read once, at the start, in one transaction and in bounded memory.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import IO

import pyarrow.parquet as pq

from lexveil.databases.address import Address
from lexveil.databases.base import BATCH


def engine(address: Address) -> ModuleType:
    """The module that speaks with a database."""
    return importlib.import_module(f"{__package__}.{address.engine}")


def spool_query(address: Address, sql: str, out: Path | IO[bytes]) -> Mapping[str, str]:
    """Write the rows of a query to a Parquet file.

    Args:
        out: readable by its owner alone.

    Returns:
        What the database calls the type of each column for which Arrow's does not say it all.

    Raises:
        RequestError: if the query cannot be read, or not to its end.
    """
    with engine(address).rows(address, sql) as rows:
        # Not compressed: it is read twice and then gone.
        with pq.ParquetWriter(out, rows.schema, compression="none", use_dictionary=False) as writer:
            for batch in rows.batches:
                writer.write_batch(batch, row_group_size=BATCH)
        kinds: Mapping[str, str] = rows.kinds
    return kinds
