"""Counts of the tokens of an embedding's future vocabulary, from the segmented corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from lexveil.base.types import Counts
from lexveil.io.config import MachineParams
from lexveil.io.execution import duckdb_session
from lexveil.lab.collocations.adjacent_tokens import LINES, sentences


def count_tokens(
    lines: Path, min_count: int, machine: MachineParams, *, plain_copy: bool
) -> tuple[list[str], Counts]:
    """Count the tokens of a segmented corpus in the same way as the training of its embedding does.

    Args:
        lines: the corpus, one sentence per line.
        min_count: smallest count of a token; rarer tokens are left out.
        plain_copy: whether a sentence with collocations counts a second time as plain words.

    Returns:
        The V tokens by falling count, and (V,) the count of each.
    """
    with duckdb_session.session(machine) as con:
        con.register("sentences", pa.RecordBatchReader.from_batches(LINES, sentences(lines)))
        query = duckdb_session.text("collocations/token_counts")
        values = {"min_count": min_count, "plain_copy": plain_copy}
        counted = con.sql(query, params=values).to_arrow_table()
    counts = counted.column("count").to_numpy().astype(np.int64)
    return counted.column("token").to_pylist(), counts
