"""Keep the n-grams whose words belong together: ngrams -> collocations/{bigrams,trigrams}.parquet."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq

from tasks.io import duck, paths
from tasks.io.params import CollocationParams, MachineParams, load_params
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import PARQUET, atomic_directory, atomic_file, read_json, require

MEASURES = {"pmi": "pmi_bits", "npmi": "npmi", "llr": "llr", "t_score": "t_score"}  # name in params.yaml -> column


def build(ngrams: Path, n_tokens: int, out: Path, params: CollocationParams, machine: MachineParams) -> dict[str, int]:
    """Write both tables into folder ``out`` and return their row counts.

    Counts are scored one row group after the other, in their order, so that memory does not grow with their number.
    """
    thresholds = asdict(params)
    del thresholds["measures"]
    left_out = [column for measure, column in MEASURES.items() if measure not in params.measures]
    kept = {}
    with duck.session(machine) as con, atomic_directory(out) as folder:
        duck.view(con, "word_file", ngrams / "words.parquet")
        con.execute("create temp table words as select word_id, word, count from word_file where kind = 'word'")
        for name in ("bigrams", "trigrams"):
            source = pq.ParquetFile(ngrams / f"{name}.parquet")
            progress = Progress(f"score {name}", source.metadata.num_rows, name)
            kept[name] = 0
            with atomic_file(folder / f"{name}.parquet") as file:
                writer = None
                # An empty table of counts still makes a table, with its columns.
                for group in range(max(1, source.num_row_groups)):
                    counts = source.read_row_group(group) if source.num_row_groups else source.read()
                    con.register(name, counts)
                    query = duck.text(f"collocation_{name}")
                    scored = con.sql(query, params={"n_tokens": n_tokens, **thresholds}).to_arrow_table()
                    con.unregister(name)
                    scored = scored.drop_columns(left_out)
                    writer = writer or pq.ParquetWriter(file, scored.schema, **PARQUET)
                    writer.write_table(scored)
                    kept[name] += scored.num_rows
                    progress.advance(counts.num_rows)
                if writer:
                    writer.close()
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
