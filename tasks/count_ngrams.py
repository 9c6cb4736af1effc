"""Count words, bigrams and trigrams: corpus/sentences.parquet -> ngrams/{words,bigrams,trigrams}.parquet."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from tasks.errors import RequestError
from tasks.io import duck, paths
from tasks.io.params import MachineParams, load_params
from tasks.io.stage import stage_main
from tasks.io.tables import atomic_directory, require, write_json, write_table
from tasks.text.function_words import CONNECTORS
from tasks.text.tokenize import has_letters

MAX_WORDS = 2**21  # a trigram key packs three word numbers into 63 bits
KINDS = ("punctuation", "connector", "word")


def number_words(con: duckdb.DuckDBPyConnection) -> tuple[pa.Table, int]:
    """Number the words of the view ``sentences``: punctuation, then connectors, then words, each by falling count.

    That order turns "no punctuation, no connector" into one integer comparison.

    Returns:
        The table (word_id, word, count, kind), and the number of the first plain word.
    """
    counted = con.sql(duck.text("word_counts")).to_arrow_table()
    if counted.num_rows > MAX_WORDS:
        raise RequestError(
            f"{paths.SENTENCES}: {counted.num_rows:,} different words; at most {MAX_WORDS:,} can be counted. "
            "Lower sample.max_documents in params.yaml"
        )
    words = counted.column("word").to_pylist()
    kinds = [0 if not has_letters(word) else 1 if word in CONNECTORS else 2 for word in words]
    order = sorted(range(len(words)), key=kinds.__getitem__)  # stable: falling count within a kind
    table = pa.table(
        {
            "word_id": pa.array(range(len(words)), pa.int32()),
            "word": counted.column("word").take(order),
            "count": counted.column("count").cast(pa.int64()).take(order),
            "kind": pa.array([KINDS[kinds[row]] for row in order], pa.string()),
        }
    )
    return table, sum(kind < 2 for kind in kinds)


def count(sentences: Path, out: Path, min_count: int, machine: MachineParams) -> dict[str, int]:
    """Write the three tables of counts into folder ``out`` and return the totals."""
    with duck.session(machine) as con, atomic_directory(out) as folder:
        duck.view(con, "sentences", sentences)
        totals = duck.run(con, "ngram_totals").fetchdf().iloc[0].to_dict()
        words, first_id = number_words(con)
        write_table(words, folder / "words.parquet")
        print(f"counted {int(totals['n_tokens']):,} tokens, {words.num_rows:,} different", flush=True)
        if words.num_rows:
            con.register("words", words)
            con.execute("create type word_enum as enum (select word from words order by word_id)")
        con.execute(f"create temp view sentence_ids as {duck.text('sentence_ids')}")
        for name in ("bigram", "trigram"):
            rows = duck.materialize(
                con, f"{name}_counts", folder / f"{name}s.parquet", first_id=first_id, min_count=min_count
            )
            totals[f"n_{name}s"] = rows
            print(f"counted {name}s: {rows:,} occur at least {min_count} times", flush=True)
    return {key: int(value) for key, value in totals.items()} | {"n_words": words.num_rows}


def main() -> None:
    """Run the stage."""
    params = load_params()
    sentences = require(paths.SENTENCES, "sample_corpus")
    totals = count(sentences, paths.NGRAMS, params.count.min_count, params.machine)
    write_json(totals, paths.METRICS / "ngrams.json")


if __name__ == "__main__":
    stage_main(main)
