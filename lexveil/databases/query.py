"""The rows of a query in a private file.

A request reads its input twice, and its budget is spent in between. A snapshot that is held open for that long keeps a
server from clearing up, and a connection that breaks in the second pass would spend the budget for nothing. So a query
is read once, at the start, in one transaction and in bounded memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO

import pyarrow.parquet as pq

from lexveil.databases.address import Address
from lexveil.databases.base import BATCH, connected, stripped


def spool_query(address: Address, sql: str, out: Path | IO[bytes]) -> Mapping[str, str]:
    """Write the rows of a query to a Parquet file.

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
