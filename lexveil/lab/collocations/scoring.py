"""Association measures such as PMI for counted n-grams, and selection of the n-grams that are
collocations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base.runtime.tables import atomic_directory, atomic_file, read_table
from lexveil.core.association import MEASURES, rendered
from lexveil.io.config import CollocationParams, MachineParams
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import Progress

NGRAMS = {"bigrams": ("first", "second"), "trigrams": ("first", "second", "third")}
# There are too many words for a dictionary to help; rows ascend by the first word, so that column
# compresses without one.
ENCODING = {"compression": "zstd", "compression_level": 1, "use_dictionary": ["count"]}


def build(
    ngrams: Path,
    n_tokens: int,
    out: Path,
    params: CollocationParams,
    machine: MachineParams,
    base: Mapping[str, pa.Table] | None = None,
) -> dict[str, int]:
    """Score the counted n-grams, write those that reach the thresholds as two tables (bigrams,
    trigrams) into folder ``out``, and return the row counts.

    N-grams are scored one row group after the other, in their order, so that memory does not grow
    with their number. The collocations of the base model that the corpus lacks get tables of their
    own, ``base_bigrams`` and ``base_trigrams``. A collocation that both the corpus and the base
    model have gets its score from the corpus.

    Args:
        base: words, count and pmi_bits of the base model's collocations, ordered; by name of the
            table.
    """
    thresholds = {measure.threshold: getattr(params, measure.threshold) for measure in MEASURES}
    measures = [
        (measure.column, pa.float64()) for measure in MEASURES if measure.name in params.measures
    ]
    words = read_table(ngrams / "words.parquet", "count_ngrams", ["word", "count"])
    spelled = words.column("word").combine_chunks()
    counts = words.column("count").to_numpy()
    kept_counts = {}
    with duckdb_session.session(machine) as con, atomic_directory(out) as folder:
        for name, places in NGRAMS.items():
            source = pq.ParquetFile(ngrams / f"{name}.parquet")
            columns = [(f"{place}_word", pa.string()) for place in places] + [("count", pa.int64())]
            schema = pa.schema(columns + measures)
            lacking = base[name] if base else None
            progress = Progress(f"score {name}", source.metadata.num_rows, name)
            kept_counts[name] = 0
            with (
                atomic_file(folder / f"{name}.parquet") as file,
                pq.ParquetWriter(file, schema, **ENCODING) as writer,
            ):
                for group in range(source.num_row_groups):
                    counted = source.read_row_group(group)
                    for place in places:
                        # A word number is a row, so a look-up by row replaces a join.
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
                    kept_counts[name] += scored.num_rows
                    lacking = None if lacking is None else without(lacking, scored, len(places))
                    progress.advance(counted.num_rows)
            progress.finish()
            if lacking is not None:
                kept_counts[f"base_{name}"] = lacking.num_rows
                pq.write_table(lacking, folder / f"base_{name}.parquet", **ENCODING)
    return kept_counts


def without(table: pa.Table, candidates: pa.Table, n_words: int) -> pa.Table:
    """Return the rows of ``table`` whose words do not occur as a row of ``candidates``, in the
    order of the table; the first ``n_words`` columns hold the words.
    """
    known = pc.binary_join_element_wise(*candidates.columns[:n_words], "_")
    own = pc.binary_join_element_wise(*table.columns[:n_words], "_")
    return table.filter(pc.invert(pc.is_in(own, value_set=known)))
