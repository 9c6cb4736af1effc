"""Association measures of counted n-grams, and the n-grams that reach all thresholds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.association import MEASURES, rendered
from lexveil.config import CollocationParams, MachineParams
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import atomic_directory, atomic_file, read_table

NGRAMS = {"bigrams": ("first", "second"), "trigrams": ("first", "second", "third")}
# Words are too many for a dictionary to help; rows ascend by the first one, which compresses by itself.
ENCODING = {"compression": "zstd", "compression_level": 1, "use_dictionary": ["count"]}


def build(ngrams: Path, n_tokens: int, out: Path, params: CollocationParams, machine: MachineParams) -> dict[str, int]:
    """Write both tables into folder ``out`` and return their row counts.

    N-grams are scored one row group after the other, in their order, so that memory does not grow with their number.
    """
    thresholds = {measure.threshold: getattr(params, measure.threshold) for measure in MEASURES}
    measures = [(measure.column, pa.float64()) for measure in MEASURES if measure.name in params.measures]
    words = read_table(ngrams / "words.parquet", "count_ngrams", ["word", "count"])
    spelled, counts = words.column("word").combine_chunks(), words.column("count").to_numpy()
    kept = {}
    with duckdb_session.session(machine) as con, atomic_directory(out) as folder:
        for name, places in NGRAMS.items():
            source = pq.ParquetFile(ngrams / f"{name}.parquet")
            columns = [(f"{place}_word", pa.string()) for place in places] + [("count", pa.int64())]
            schema = pa.schema(columns + measures)
            progress = Progress(f"score {name}", source.metadata.num_rows, name)
            kept[name] = 0
            with atomic_file(folder / f"{name}.parquet") as file, pq.ParquetWriter(file, schema, **ENCODING) as writer:
                for group in range(source.num_row_groups):
                    counted = source.read_row_group(group)
                    for place in places:
                        # A word number is a row: looking it up beats joining.
                        of_word = counts[counted.column(f"{place}_id").to_numpy()]
                        counted = counted.append_column(f"{place}_count", pa.array(of_word))
                    con.register(name, counted)
                    query = rendered(duckdb_session.text(f"collocations/collocation_{name}"))
                    values = {"n_tokens": n_tokens, "min_count": params.min_count, **thresholds}
                    scored = con.sql(query, params=values).to_arrow_table()
                    for column, place in enumerate(places):
                        word = spelled.take(scored.column(column).combine_chunks())
                        scored = scored.set_column(column, f"{place}_word", word)
                    writer.write_table(scored.select(schema.names).cast(schema))
                    kept[name] += scored.num_rows
                    progress.advance(counted.num_rows)
            progress.finish()
    return kept
