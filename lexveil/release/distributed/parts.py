"""Division of an output table that was rewritten on a cluster into the files ("parts") that are
published.

An engine divides its input by the bytes of the source, and reads larger files first. Output files
that were divided and ordered likewise would disclose how long source texts are. Therefore every
written row gets a random number, and the numbers alone determine the part of a row and its position
in the part. The number of parts follows from the rows and the bytes of text that are written
(docs/proofs/distributed.md).
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base.errors import LexveilError
from lexveil.base.runtime.tables import PARQUET
from lexveil.base.types import Int64
from lexveil.io.formats.bare_tables import bare_column, bare_field
from lexveil.release.distributed.rewriter import RunTotals

PART_ROWS = 500_000  # average number of rows in a part
PART_BYTES = 2**27  # average number of bytes of rewritten text in a part
# rows per row group of an undivided file, which is the smallest unit to read for a part
GROUP_ROWS = 8_192
LIMIT = 2**63  # larger than every random number of a row
NOT_COPIED = (
    "the rewritten table could not be divided into its parts, because rows were lost or "
    "duplicated on the way; nothing is published"
)


def part_count(totals: RunTotals) -> int:
    """Return the number of files into which an output table is divided, at least one. The number
    depends on the rewritten rows alone.
    """
    by_rows = -(-(totals.rows - totals.withheld) // PART_ROWS)
    by_bytes = -(-totals.bytes_written // PART_BYTES)
    return max(by_rows, by_bytes, 1)


def order_column() -> str:
    """Return a random name for the column of random numbers, which no column of a table has."""
    return f"order_{secrets.token_hex(8)}"


def random_numbers(batch: pa.RecordBatch) -> Int64:
    """Return one random whole number from 0 to ``LIMIT`` for each row, shape (n_rows,), drawn from
    the operating system. The numbers do not depend on the content of the rows.
    """
    drawn = np.frombuffer(secrets.token_bytes(8 * batch.num_rows), np.uint64)
    return (drawn >> np.uint64(1)).astype(np.int64)


def with_order(batch: pa.RecordBatch, order: str) -> pa.RecordBatch:
    """Return rewritten rows with an additional column of random numbers, named ``order``."""
    numbers = pa.array(random_numbers(batch), pa.int64())
    return batch.append_column(order, numbers)


def require_all(n_rows: int, totals: RunTotals) -> None:
    """Check that the output files contain every written row exactly once, by the number of rows.

    Raises:
        LexveilError: if there are more or fewer rows.
    """
    if n_rows != totals.rows - totals.withheld:
        raise LexveilError(NOT_COPIED)


def ranges(n_parts: int) -> list[tuple[int, int]]:
    """Return the range of random numbers that belongs to each output file: the first number, and
    the number after the last.
    """
    bounds = [part * LIMIT // n_parts for part in range(n_parts + 1)]
    return list(itertools.pairwise(bounds))


def write_undivided(batch: pa.RecordBatch, order: str, file: Path) -> None:
    """Write rows with their random numbers into an intermediate file that will be divided later."""
    numbered = pa.Table.from_batches([with_order(batch, order)])
    pq.write_table(_bare(numbered.sort_by(order)), file, row_group_size=GROUP_ROWS, **PARQUET)


def write_part(files: Sequence[Path], order: str, numbers: tuple[int, int], out: Path) -> int:
    """Write one output file: collect the rows of all intermediate files whose random numbers lie in
    a range, and sort them by number. Return the number of rows.
    """
    first, stop = numbers
    chosen = (pc.field(order) >= first) & (pc.field(order) <= stop - 1)
    tables = [pq.read_table(file, filters=chosen) for file in files]
    table = pa.concat_tables(tables).sort_by(order).drop_columns([order])
    pq.write_table(_bare(table), out, **PARQUET)
    return int(table.num_rows)


def _bare(table: pa.Table) -> pa.Table:
    """Return a copy of an Arrow table without metadata, with dictionary values in the order of
    their first rows.
    """
    schema = pa.schema([bare_field(field) for field in table.schema])
    columns = [
        bare_column(column, field.type) for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.table(columns, schema)
