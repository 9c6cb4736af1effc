"""Keep the n-grams whose words belong together: ngrams -> collocations/{bigrams,trigrams}.parquet."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.config import CollocationParams, MachineParams, load_params
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import atomic_directory, atomic_file, read_json, read_table, require

NGRAMS = {"bigrams": ("first", "second"), "trigrams": ("first", "second", "third")}
MEASURES = {"pmi": "pmi_bits", "npmi": "npmi", "llr": "llr", "t_score": "t_score"}  # name in params.yaml -> column
# Words are too many for a dictionary to help; rows ascend by the first one, which compresses by itself.
ENCODING = {"compression": "zstd", "compression_level": 1, "use_dictionary": ["count"]}


def build(ngrams: Path, n_tokens: int, out: Path, params: CollocationParams, machine: MachineParams) -> dict[str, int]:
    """Write both tables into folder ``out`` and return their row counts.

    N-grams are scored one row group after the other, in their order, so that memory does not grow with their number.
    """
    thresholds = asdict(params)
    del thresholds["measures"]
    words = read_table(ngrams / "words.parquet", "count_ngrams", ["word", "count"])
    spelled, counts = words.column("word").combine_chunks(), words.column("count").to_numpy()
    kept = {}
    with duckdb_session.session(machine) as con, atomic_directory(out) as folder:
        for name, places in NGRAMS.items():
            source = pq.ParquetFile(ngrams / f"{name}.parquet")
            columns = [(f"{place}_word", pa.string()) for place in places] + [("count", pa.int64())]
            measures = [(column, pa.float64()) for measure, column in MEASURES.items() if measure in params.measures]
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
                    query = duckdb_session.text(f"collocations/collocation_{name}")
                    scored = con.sql(query, params={"n_tokens": n_tokens, **thresholds}).to_arrow_table()
                    for at, place in enumerate(places):
                        word = spelled.take(scored.column(at).combine_chunks())
                        scored = scored.set_column(at, f"{place}_word", word)
                    writer.write_table(scored.select(schema.names).cast(schema))
                    kept[name] += scored.num_rows
                    progress.advance(counted.num_rows)
            progress.finish()
    return kept


def main() -> None:
    """Run the stage."""
    params = load_params()
    n_tokens = read_json(paths.METRICS / "ngrams.json", "count_ngrams")["n_tokens"]
    kept = build(
        require(paths.NGRAMS, "count_ngrams"), n_tokens, paths.COLLOCATIONS, params.collocations, params.machine
    )
    print(f"collocations: {kept['bigrams']:,} bigrams, {kept['trigrams']:,} trigrams")


if __name__ == "__main__":
    stage_main(main)
