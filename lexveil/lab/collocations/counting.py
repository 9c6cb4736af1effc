"""Counting of words, bigrams and trigrams in the tokenized corpus.

DuckDB counts the corpus shard by shard: an n-gram is one integer, and the counts of a shard are
written to a file. Finished shards survive an interruption of the stage. At the end the counts of
all files are added up, one range of keys after another, so that memory does not grow with the
corpus. The borders of shards and ranges change no byte of the result.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.base.runtime.tables import atomic_directory, read_json, read_table, write_json
from lexveil.io.config import MachineParams
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.checkpoints import check_disk, expect_file, kept_work, own_folder
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.pool import ordered_map
from lexveil.io.execution.stage import Progress

LOG = logger(__name__)

COUNTED_BY = {"bigrams": "collocations/bigram_counts", "trigrams": "collocations/trigram_counts"}
NAMES = tuple(COUNTED_BY)
QUERIES = ("collocations/shard_totals", *COUNTED_BY.values())  # queries behind a shard's files
MAX_WORDS = 2**21  # a trigram's key packs three word numbers into 63 bits
LAST_KEY = 2**63 - 1
SHARD_TOKENS = 2**22  # approximate tokens of a shard; fewer if the memory limit requires it
TOKEN_BYTES = 128  # largest number of bytes of memory to count one token
ROWS_OF_A_GROUP = 2**18  # rows of a row group of the output; scoring reads one row group at a time
# rows of a row group of a shard's counts: reading a range of keys reads about one group more than
# the range
SHARD_ROWS = 2**15
ROW_BYTES = 6  # bytes of a counted n-gram in the file of a shard
RANGE_BYTES = 1024  # largest number of bytes of memory to add up one counted n-gram


class Shard(NamedTuple):
    """One part of the corpus: consecutive row groups of tokens.parquet, and the path of the files
    with the part's n-gram counts.
    """

    tokens: Path
    groups: list[int]
    n_tokens: int
    base: Path

    def counts(self, name: str) -> Path:
        """Return the path of the shard's Parquet file with the counts of bigrams or trigrams
        (columns key and count).
        """
        return self.base.with_suffix(f".{name}.parquet")

    def totals(self) -> Path:
        """Return the path of the shard's JSON file with the total counts. This file is written
        last, so its presence marks a finished shard.
        """
        return self.base.with_suffix(".json")


class Range(NamedTuple):
    """Interval of the word ids that counted n-grams may contain: no punctuation, no connectors, and
    no word that is rarer than the smallest allowed count of an n-gram.
    """

    first_id: int
    end_id: int


def countable(words: pa.Table, min_count: int) -> Range:
    """Return the interval of the word ids whose n-grams are counted.

    No n-gram is more frequent than its rarest word, so words below ``min_count`` are left out.

    Raises:
        RequestError: if there are more such words than an n-gram's integer key can hold.
    """
    kinds = words.column("kind")
    first = pc.sum(pc.not_equal(kinds, "word")).as_py() or 0
    counts = words.column("count").to_numpy()[first:]
    end = first + int(np.searchsorted(-counts, -min_count, side="right"))
    if end > MAX_WORDS:
        raise RequestError(
            f"{paths.WORDS}: {end:,} different words occur at least {min_count} times; "
            "n-grams of at most "
            f"{MAX_WORDS:,} can be counted. Raise count.min_count in params.yaml "
            "(collocations.min_count is at least "
            "as high), or lower sample.max_documents"
        )
    return Range(first, end)


def shards_of(tokens: Path, folder: Path, size: int) -> list[Shard]:
    """Split the corpus at row groups into shards of about ``size`` tokens. An empty corpus becomes
    one empty shard.
    """
    meta = pq.read_metadata(tokens)
    shards: list[Shard] = []
    groups: list[int] = []
    n = 0
    for number in range(meta.num_row_groups):
        group = meta.row_group(number)
        columns = (group.column(at) for at in range(group.num_columns))
        groups.append(number)
        n += sum(
            column.num_values for column in columns if column.path_in_schema.startswith("ids.")
        )
        if n >= size or number + 1 == meta.num_row_groups:
            shards.append(Shard(tokens, groups, n, folder / f"{len(shards):06}"))
            groups = []
            n = 0
    return shards or [Shard(tokens, [], 0, folder / "000000")]


def count_shard(shard: Shard, words: Range, machine: MachineParams) -> dict[str, int]:
    """Count the n-grams of one shard of the corpus, write the counts to files, and return the
    totals.

    The files are written in a folder of this process and then renamed, so a killed or late worker
    leaves no partial file at the final path.
    """
    expect_file(shard.tokens, "this worker")
    with own_folder(shard.base.parent) as folder, duckdb_session.session(machine) as con:
        mine = shard._replace(base=folder / shard.base.name)
        table = pq.ParquetFile(shard.tokens).read_row_groups(
            shard.groups, columns=["sentence_id", "ids"]
        )
        con.register("shard", table)
        query = duckdb_session.text("collocations/shard_totals")
        totals: dict[str, int] = con.sql(query).to_arrow_table().to_pylist()[0]
        for name in NAMES:
            limits = words._asdict()
            duckdb_session.materialize(
                con, COUNTED_BY[name], mine.counts(name), group_rows=SHARD_ROWS, **limits
            )
            mine.counts(name).replace(shard.counts(name))
        write_json(totals, mine.totals())
        mine.totals().replace(shard.totals())
    return totals


def count_shards(shards: list[Shard], words: Range, machine: MachineParams) -> dict[str, int]:
    """Count the n-grams of every shard that has no counts yet, either in this process with the
    threads of DuckDB or on a cluster.

    Returns:
        The sums of the totals of all shards.
    """
    missing = [shard for shard in shards if not shard.totals().exists()]
    totals = Counter(
        dict.fromkeys(
            ("n_documents", "n_sentences", "n_tokens", "bigram_tokens", "trigram_tokens"), 0
        )
    )
    for shard in shards:
        if shard not in missing:
            totals.update(read_json(shard.totals(), "count_ngrams"))
    if len(missing) < len(shards):
        n_known = len(shards) - len(missing)
        LOG.info(f"count: {n_known} of {len(shards)} shards were counted by an interrupted run")
    progress = Progress("count", sum(shard.n_tokens for shard in missing), "tokens")
    alone = machine.dask_scheduler is None or len(missing) < 2
    counter = partial(
        count_shard, words=words, machine=machine if alone else duckdb_session.share(machine)
    )
    for shard, counted in zip(
        missing,
        map(counter, missing) if alone else ordered_map(counter, missing, machine),
        strict=True,
    ):
        expect_file(shard.totals(), "this process")
        totals.update(counted)
        progress.advance(
            counted["n_tokens"], counted["n_tokens"], f"{totals['n_documents']:,} documents"
        )
    progress.finish()
    return dict(totals)


def key_ranges(files: Sequence[Path], rows: int) -> Iterator[tuple[int, int]]:
    """Split the integer keys of all n-grams into ranges (first and last key), so that each range
    has about ``rows`` rows in all count files together.

    Ranges end where row groups end, according to the statistics of the files. Each file may
    therefore add up to one row group to a range.
    """
    ends: list[tuple[int, int]] = []
    for file in files:
        meta = pq.read_metadata(file)
        groups = (meta.row_group(number) for number in range(meta.num_row_groups))
        ends += [
            (group.column(0).statistics.max, group.num_rows) for group in groups if group.num_rows
        ]
    first = n = 0
    for last, group_rows in sorted(ends):
        n += group_rows
        if n >= rows and first <= last < LAST_KEY:
            yield first, last
            first = last + 1
            n = 0
    yield first, LAST_KEY


def disk(words: pa.Table, used: Range) -> tuple[float, float]:
    """Estimate the disk space in bytes that the n-gram counts of all shards need; return the
    expected number and an upper bound.

    The estimate assumes that words are independent: a pair counts with probability p^2 and a triple
    with p^3, where p is the share of tokens that may occur in n-grams; neither can exceed p. Every
    n-gram is assumed to differ from all others in its shard.
    """
    n_tokens = pc.sum(words.column("count")).as_py() or 0
    n_used = (
        pc.sum(words.column("count").slice(used.first_id, used.end_id - used.first_id)).as_py() or 0
    )
    share = n_used / max(n_tokens, 1)
    return ROW_BYTES * n_used * (share + share**2), 2 * ROW_BYTES * n_used


def count(
    tokens: Path, words: Path, out: Path, min_count: int, machine: MachineParams
) -> dict[str, int]:
    """Count the words, bigrams and trigrams of the corpus, write one table of each into folder
    ``out``, and return the totals.

    Raises:
        RequestError: if there are too many different words, too little disk space, or the two files
            come from different corpora.
    """
    table = read_table(words, "sample_corpus", columns=["count", "kind"])
    used = countable(table, min_count)
    memory = duckdb_session.memory_bytes(
        machine if machine.dask_scheduler is None else duckdb_session.share(machine)
    )
    size = min(SHARD_TOKENS, max(2**14, memory // (2 * TOKEN_BYTES)))
    code = ["lexveil.lab.collocations.counting", *QUERIES]
    with (
        kept_work(machine, "count_ngrams", code, [tokens, words], used, size) as work,
        atomic_directory(out) as folder,
    ):
        check_disk(work, *disk(table, used), "counting")
        # absolute paths, since workers may run in other folders
        shards = shards_of(tokens.resolve(), work.resolve(), size)
        n_tokens = sum(shard.n_tokens for shard in shards if not shard.totals().exists())
        foresee(
            f"count: {n_tokens:,} tokens",
            {"tokens counted": n_tokens},
            "Lower sample.max_documents",
            machine,
        )
        totals = count_shards(shards, used, machine)
        if totals["n_tokens"] != (pc.sum(table.column("count")).as_py() or 0):
            raise RequestError(
                f"{words} counts another number of tokens than {tokens} holds; `dvc repro "
                "--force sample_corpus` makes "
                "both from the same documents"
            )
        # the word numbers of the n-grams refer to this table
        shutil.copyfile(words, folder / "words.parquet")
        for name in NAMES:
            LOG.info(f"adding up the {name} of {len(shards)} shards")
            files = [shard.counts(name) for shard in shards]
            ranges = [
                {"first_key": first, "last_key": last, "min_count": min_count}
                for first, last in key_ranges(
                    files, duckdb_session.memory_bytes(machine) // RANGE_BYTES
                )
            ]
            with duckdb_session.session(machine) as con:
                duckdb_session.view(con, "counted", *files)
                query = f"collocations/merge_{name}"
                file = folder / f"{name}.parquet"
                rows = duckdb_session.materialize_parts(
                    con, query, file, ranges, group_rows=ROWS_OF_A_GROUP
                )
            totals[f"n_{name}"] = rows
            LOG.info(f"counted {name}: {rows:,} occur at least {min_count} times")
    return totals | {"n_words": table.num_rows}
