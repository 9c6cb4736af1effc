"""Count words, bigrams and trigrams: corpus/{tokens,words}.parquet -> ngrams/{words,bigrams,trigrams}.parquet.

The corpus is counted shard by shard: the n-grams of a shard become integers, are sorted and counted, and written as a
sorted run. A shard that is done is kept if the stage is interrupted. The runs are merged in stretches of keys, so that
memory depends on ``machine.memory_limit`` and not on the corpus. Where shards are cut changes no total.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.errors import RequestError
from tasks.io import paths
from tasks.io.duck import memory_bytes
from tasks.io.params import MachineParams, load_params
from tasks.io.runs import ROW, Run, merge, write_run
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import atomic_directory, atomic_file, read_json, read_table, require, write_json
from tasks.io.work import check_disk, kept_work
from tasks.text.ngrams import MAX_WORDS, Counts, Keys, count_keys, ngram_keys, unpack

NAMES = {"bigrams": 2, "trigrams": 3}
PLACES = ("first_id", "second_id", "third_id")
SHARD_TOKENS = 2**21  # tokens of a shard, about; fewer if the memory limit asks for it
ROWS = 2**18  # of a row group of the output; also what is scored at a time
MERGE_ROWS = 2**20  # merged at a time; fewer if the memory limit asks for it
TOKEN_BYTES = 64  # memory that counting a token takes, at most
MERGE_BYTES = 96  # memory that merging a row takes, at most


class Shard(NamedTuple):
    """Consecutive row groups of tokens.parquet, and where their counts are written."""

    tokens: Path
    groups: list[int]
    n_tokens: int
    base: Path

    def run(self, name: str) -> Path:
        """The sorted run of the bigrams or trigrams."""
        return self.base.with_suffix(f".{name}")

    def totals(self) -> Path:
        """JSON, written last, so that it stands for the whole shard."""
        return self.base.with_suffix(".json")


class Range(NamedTuple):
    """The words that n-grams are made of: neither punctuation, nor connectors, nor rarer than an n-gram may be."""

    first_id: int
    end_id: int


def countable(words: pa.Table, min_count: int) -> Range:
    """The range of word numbers of which n-grams are counted.

    No n-gram is more frequent than its rarest word, so words below ``min_count`` need not be looked at.

    Raises:
        RequestError: if there are more of them than a key can hold.
    """
    kinds = words.column("kind")
    first = pc.sum(pc.not_equal(kinds, "word")).as_py() or 0
    counts = words.column("count").to_numpy()[first:]
    end = first + int(np.searchsorted(-counts, -min_count, side="right"))
    if end > MAX_WORDS:
        raise RequestError(
            f"{paths.WORDS}: {end:,} different words occur at least {min_count} times; n-grams of at most "
            f"{MAX_WORDS:,} can be counted. Raise count.min_count in params.yaml (collocations.min_count is at least "
            "as high), or lower sample.max_documents"
        )
    return Range(first, end)


def shards_of(tokens: Path, folder: Path, size: int) -> list[Shard]:
    """Cut the corpus at row groups into shards of about ``size`` tokens."""
    meta = pq.read_metadata(tokens)
    shards: list[Shard] = []
    groups: list[int] = []
    n = 0
    for number in range(meta.num_row_groups):
        group = meta.row_group(number)
        columns = (group.column(at) for at in range(group.num_columns))
        groups.append(number)
        n += sum(column.num_values for column in columns if column.path_in_schema.startswith("ids."))
        if n >= size or number + 1 == meta.num_row_groups:
            shards.append(Shard(tokens, groups, n, folder / f"{len(shards):06}"))
            groups, n = [], 0
    return shards


def count_shard(shard: Shard, words: Range) -> dict[str, int]:
    """Write the runs of one shard and return its totals."""
    file = pq.ParquetFile(shard.tokens)
    table = file.read_row_groups(shard.groups, columns=["sentence_id", "ids"], use_threads=False)
    lists = table.column("ids").combine_chunks()
    sizes = pc.list_value_length(lists).to_numpy()
    totals = {
        # Each document has one first sentence, in whichever shard.
        "n_documents": pc.sum(pc.equal(table.column("sentence_id"), 0)).as_py() or 0,
        "n_sentences": len(sizes),
        "n_tokens": int(sizes.sum()),
        "bigram_tokens": int(np.maximum(sizes - 1, 0).sum()),
        "trigram_tokens": int(np.maximum(sizes - 2, 0).sum()),
    }
    keys = ngram_keys(lists.flatten().to_numpy(), sizes, *words)
    del table, lists
    for name, own in zip(NAMES, keys, strict=True):
        write_run(shard.run(name), *count_keys(own))
    write_json(totals, shard.totals())
    return totals


def count_shards(shards: list[Shard], words: Range, threads: int) -> dict[str, int]:
    """Count every shard that is not counted yet; return the totals of all."""
    totals = dict.fromkeys(("n_documents", "n_sentences", "n_tokens", "bigram_tokens", "trigram_tokens"), 0)

    def add(more: dict[str, int]) -> None:
        for key in totals:
            totals[key] += more[key]

    missing = [shard for shard in shards if not shard.totals().exists()]
    for shard in shards:
        if shard.totals().exists():
            add(read_json(shard.totals(), "count_ngrams"))
    if len(missing) < len(shards):
        print(f"count: {len(shards) - len(missing)} of {len(shards)} shards were counted by an interrupted run")
    progress = Progress("count", sum(shard.n_tokens for shard in missing), "tokens")
    # Sorting and reading Parquet let go of Python's lock, so threads do.
    with ThreadPoolExecutor(threads) as pool:
        for more in pool.map(partial(count_shard, words=words), missing):
            add(more)
            progress.advance(more["n_tokens"], more["n_tokens"], f"{totals['n_documents']:,} documents")
    progress.finish()
    return totals


def write_ngrams(out: Path, length: int, pieces: Iterable[tuple[Keys, Counts]], min_count: int) -> int:
    """Write the n-grams that occur at least ``min_count`` times, in row groups of ROWS whatever the pieces are.

    Returns:
        The number of n-grams.
    """
    names = PLACES[:length]
    schema = pa.schema([*((name, pa.int32()) for name in names), ("count", pa.int64())])
    # Rows ascend by the first word; the other numbers seldom use their upper bytes.
    encoding = dict.fromkeys(names[1:], "BYTE_STREAM_SPLIT") | {names[0]: "DELTA_BINARY_PACKED"}
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": ["count"], "column_encoding": encoding}
    rows = 0
    with atomic_file(out) as file, pq.ParquetWriter(file, schema, **options) as writer:

        def write(table: pa.Table) -> None:
            nonlocal rows
            writer.write_table(table, row_group_size=ROWS)
            rows += table.num_rows

        waiting = schema.empty_table()
        for keys, counts in pieces:
            enough = counts >= min_count
            columns = [*unpack(keys[enough], length), counts[enough]]
            waiting = pa.concat_tables([waiting, pa.table(columns, schema)])
            whole = waiting.num_rows - waiting.num_rows % ROWS
            if whole:
                write(waiting.slice(0, whole))
                waiting = waiting.slice(whole).combine_chunks()
        if waiting.num_rows:
            write(waiting)
    return rows


def merged(name: str, runs: list[Run], at_once: int) -> Iterator[tuple[Keys, Counts]]:
    """The merge of all runs, with progress."""
    progress = Progress(f"merge {name}", sum(run.n_rows for run in runs), "counts")
    for keys, counts, n_rows in merge(runs, at_once):
        yield keys, counts
        progress.advance(n_rows)
    progress.finish()


def disk(words: pa.Table, used: Range) -> tuple[float, float]:
    """Bytes that the runs and the tables take: expected, and at most.

    As if words were independent, a pair counts with probability p^2 and a triple with p^3, p the share of tokens that
    count; neither can exceed p. Every one is taken to be different from all others in its shard.
    """
    n_tokens = pc.sum(words.column("count")).as_py() or 0
    n_used = pc.sum(words.column("count").slice(used.first_id, used.end_id - used.first_id)).as_py() or 0
    share = n_used / max(n_tokens, 1)
    table = 0.5  # bytes of a row of the table for each byte of a run's
    return (1 + table) * ROW * n_used * (share + share**2), (1 + table) * ROW * n_used * 2


def count(tokens: Path, words: Path, out: Path, min_count: int, machine: MachineParams) -> dict[str, int]:
    """Write the three tables of counts into folder ``out`` and return the totals.

    Raises:
        RequestError: if there are too many different words, too little disk, or the two files are of different corpora.
    """
    table = read_table(words, "sample_corpus", columns=["count", "kind"])
    used = countable(table, min_count)
    limit = memory_bytes(machine)
    size = min(SHARD_TOKENS, max(2**14, limit // (2 * machine.threads * TOKEN_BYTES)))
    at_once = min(MERGE_ROWS, max(2**16, limit // (2 * MERGE_BYTES)))
    code = ["count_ngrams.py", "text/ngrams.py", "io/runs.py"]
    with kept_work(machine, "count_ngrams", code, [tokens, words], used, size) as work, atomic_directory(out) as folder:
        check_disk(work, *disk(table, used), "counting")
        shards = shards_of(tokens, work, size)
        totals = count_shards(shards, used, machine.threads)
        if totals["n_tokens"] != (pc.sum(table.column("count")).as_py() or 0):
            raise RequestError(
                f"{words} counts another number of tokens than {tokens} holds; `dvc repro --force sample_corpus` makes "
                "both from the same documents"
            )
        shutil.copyfile(words, folder / "words.parquet")  # the numbers below mean nothing without it
        for name, length in NAMES.items():
            runs = [Run.of(shard.run(name)) for shard in shards]
            rows = write_ngrams(folder / f"{name}.parquet", length, merged(name, runs, at_once), min_count)
            totals[f"n_{name}"] = rows
            print(f"counted {name}: {rows:,} occur at least {min_count} times", flush=True)
    return totals | {"n_words": table.num_rows}


def main() -> None:
    """Run the stage."""
    params = load_params()
    tokens, words = require(paths.TOKENS, "sample_corpus"), require(paths.WORDS, "sample_corpus")
    totals = count(tokens, words, paths.NGRAMS, params.count.min_count, params.machine)
    write_json(totals, paths.METRICS / "ngrams.json")


if __name__ == "__main__":
    stage_main(main)
