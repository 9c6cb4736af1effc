"""Bigram counts over the vocabulary of an embedding, counted in the segmented corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.io.artifacts.embeddings import MOST_BIGRAMS
from lexveil.io.config import MachineParams
from lexveil.io.execution import duckdb_session

MIN_COUNT = 2  # smallest count of a stored pair: most rarer pairs occur by chance
SOME = 2**24  # approximate bytes of lines per batch for DuckDB
LINES = pa.schema([("line", pa.string())])


def count_bigrams(
    lines: Path, tokens: Sequence[str], machine: MachineParams, most: int = MOST_BIGRAMS
) -> Bigrams:
    """Count how often each pair of vocabulary tokens is adjacent in a segmented corpus with one
    sentence per line.
    """
    numbers = {
        "token": pa.array(tokens, pa.string()),
        "number": pa.array(range(len(tokens)), pa.int32()),
    }
    with duckdb_session.session(machine) as con:
        con.register("sentences", pa.RecordBatchReader.from_batches(LINES, sentences(lines)))
        con.register("vocabulary", pa.table(numbers))
        query = duckdb_session.text("collocations/adjacent_tokens")
        pairs = con.sql(query, params={"min_count": MIN_COUNT, "most": most}).to_arrow_table()
    first, second, counts = (pairs.column(name).to_numpy() for name in ("first", "second", "count"))
    return Bigrams.of(first, second, counts, len(tokens))


def sentences(lines: Path) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a text file in batches; only a line feed ends a line."""
    with lines.open("rb") as source:
        while some := source.readlines(SOME):
            yield pa.record_batch(
                [pa.array([line[:-1].decode("utf-8") for line in some], pa.string())], LINES
            )
