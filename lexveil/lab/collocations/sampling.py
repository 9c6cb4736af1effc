"""Sampling and tokenization of the corpus, with each word stored as an integer id.

Each word becomes a number here, and later stages never read text again. The sample is cut into
shards of whole documents. Each shard numbers its own words, so shards do not wait for each other
and finished shards survive an interruption of the stage. When all shards are there, the vocabulary
is numbered once and every shard is renumbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base.errors import MissingArtifactError, ParameterError
from lexveil.base.logs import logger
from lexveil.base.runtime.tables import atomic_file
from lexveil.core.text.languages import DEFAULT, language_of
from lexveil.core.text.normal_forms import has_letters, is_punctuation
from lexveil.core.text.tokenize import tokenize_texts
from lexveil.io.config import MachineParams, Params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.checkpoints import check_disk, expect_file, kept_work, own_folder
from lexveil.io.execution.pool import ordered_map
from lexveil.io.execution.stage import Progress

LOG = logger(__name__)

TOKENS = pa.schema(
    [("doc_id", pa.string()), ("sentence_id", pa.int32()), ("ids", pa.list_(pa.int32()))]
)
SHARD_WORDS = pa.schema(
    {
        "shard": pa.int32(),
        "local_id": pa.int32(),
        "word": pa.string(),
        "count": pa.int64(),
        "kind": pa.int8(),
    }
)
# BYTE_STREAM_SPLIT gives smaller files than a dictionary and writes four times as fast, because
# word numbers seldom use their upper bytes.
ENCODING = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["doc_id"],
    "column_encoding": {"ids.list.element": "BYTE_STREAM_SPLIT"},
}

GROUP = 10_240  # documents of a row group of sample.parquet; a row group is read as a whole
DOCUMENTS_OF_A_BATCH = (
    5_120  # largest number of documents of a shard and of a row group of tokens.parquet
)
BATCH_BYTES = 16_000_000  # largest number of bytes of text of a shard; one document may exceed it
# smallest and greatest limit on the bytes of a document's line in a shard; the smallest is DuckDB's
# default
OBJECT_BYTES = (2**24, 2**27)
SMALL_CORPUS = 300_000  # with fewer documents, starting worker processes costs more than it saves


def sources_of(corpus: Path, weights: dict[str, float]) -> dict[str, list[Path]]:
    """Return the files (shards) of each source of the corpus: a folder in the corpus folder is a
    named source; files directly in the corpus folder have no source name.

    Raises:
        MissingArtifactError: if there are no shards.
        ParameterError: if a weight names no source, or all weights are 0.
    """
    sources = {"": sorted(corpus.glob("*.json.gz"))}
    sources |= {
        folder.name: sorted(folder.glob("*.json.gz")) for folder in sorted(corpus.glob("*/"))
    }
    sources = {name: shards for name, shards in sources.items() if shards}
    if not sources:
        raise MissingArtifactError(
            f"{corpus} holds no *.json.gz shard; add a corpus with `lexveil data default` or "
            "`lexveil data use --corpus PATH`"
        )
    for name in weights:
        if name not in sources or not name:
            names = ", ".join(filter(None, sources)) or "none, because its shards have no name"
            raise ParameterError(
                f"params.yaml: sample.weights.{name} names no source in {corpus} (its sources: "
                f"{names}); remove the weight, or add the source with `lexveil data use "
                "--corpus NAME=PATH`"
            )
    if not any(weights.get(name, 1.0) for name in sources):
        raise ParameterError(
            "params.yaml: sample.weights: all weights are 0, so nothing can be sampled; raise one"
        )
    return sources


def object_size(shards: Iterable[Path]) -> int:
    """Return the largest allowed number of bytes of a JSON line (one document): the uncompressed
    size of the largest shard, limited to the interval ``OBJECT_BYTES``.

    DuckDB opens many shards at once, each with a buffer of twice this size, so the greatest allowed
    limit would fill the memory even for small shards. A gzip file ends with its unpacked size (RFC
    1952, ISIZE).
    """
    sizes = []
    for shard in shards:
        with shard.open("rb") as file:
            file.seek(max(shard.stat().st_size - 4, 0))
            sizes.append(int.from_bytes(file.read(4), "little"))
    least, most = OBJECT_BYTES
    return min(max(least, *sizes), most)


def sample(corpus: Path, out: Path, params: Params, machine: MachineParams) -> dict[str, int]:
    """Draw a random sample of the corpus documents, write it (doc_id, text, source), and return the
    number of documents of each source.

    Raises:
        MissingArtifactError, ParameterError: as ``sources_of``.
    """
    weights = params.sample.weights
    sources = {
        name: shards
        for name, shards in sources_of(corpus, weights).items()
        if weights.get(name, 1.0)
    }
    with duckdb_session.session(machine) as con:
        largest = object_size(shard for shards in sources.values() for shard in shards)
        packed = sum(shard.stat().st_size for shards in sources.values() for shard in shards)
        # The sample is about as large as the shards; rows that do not fit into memory are spilled
        # unpacked.
        check_disk(Path(machine.temp_directory), packed, 5 * packed, "sampling")
        con.execute(
            "create temp view corpus as "
            + " union all ".join(
                f"select text, '{name}' as source, {weights.get(name, 1.0)!r}::double as weight "
                f"from read_json({duckdb_session.file_list(shards)}, "
                f"columns = {{text: 'varchar'}}, format = 'newline_delimited', "
                f"maximum_object_size = {largest})"
                for name, shards in sources.items()
            )
        )
        chosen = {"seed": params.seed, "max_documents": params.sample.max_documents}
        duckdb_session.materialize(con, "corpus/sample", out, group_rows=GROUP, **chosen)
        duckdb_session.view(con, "sample", out)
        return dict(
            con.execute("select source, count(*) from sample group by all order by all").fetchall()
        )


class DocumentShard(NamedTuple):
    """One part of the sampled documents: its number, the folder for its tokens and words, its rows
    (doc_id, text), and their language.
    """

    number: int
    folder: Path
    documents: pa.RecordBatch
    language: str

    def tokens(self) -> Path:
        """Return the path of the shard's Arrow file of tokens (doc_id, sentence_id, ids). This file
        is written last, so its presence marks a finished shard.
        """
        return self.folder / f"{self.number:06}.tokens.arrow"

    def words(self) -> Path:
        """Return the path of the Parquet file with the distinct words of the shard."""
        return self.folder / f"{self.number:06}.words.parquet"


def kind_of(word: str, connectors: frozenset[str]) -> int:
    """Classify a token: 0 for punctuation, 1 for a connector (a word that only joins others), 2 for
    any other word. Words that collocations may contain come last.
    """
    return 0 if not has_letters(word) else 1 if word in connectors else 2


def tokenize_shard(shard: DocumentShard) -> tuple[int, int]:
    """Tokenize one shard of documents, write its tokens and words, and return the numbers of
    documents and tokens. The function may run in a worker process.
    """
    expect_file(shard.folder, "this worker")
    with own_folder(shard.folder) as folder:
        mine = shard._replace(folder=folder)
        n_tokens = write_shard(mine)
        mine.words().replace(shard.words())
        mine.tokens().replace(shard.tokens())
    return shard.documents.num_rows, n_tokens


def write_shard(shard: DocumentShard) -> int:
    """Tokenize one shard of documents, write its tokens and words, and return the number of
    tokens.
    """
    documents = shard.documents
    tokens = tokenize_texts(documents.column("text"), shard.language)
    n_sentences = len(tokens.sentence_sizes)
    n_words = len(tokens.words)
    connectors = language_of(shard.language).connectors
    kinds = np.array(
        [kind_of(word, connectors) for word in tokens.words.to_pylist()], dtype=np.int8
    )
    counts = np.bincount(tokens.ids, minlength=n_words)
    words = [
        np.full(n_words, shard.number, np.int32),
        np.arange(n_words, dtype=np.int32),
        tokens.words,
        counts,
        kinds,
    ]
    with atomic_file(shard.words()) as file:
        pq.write_table(pa.table(words, SHARD_WORDS), file, compression="zstd", compression_level=1)

    offsets = np.concatenate([[0], np.cumsum(tokens.sentence_sizes)]).astype(np.int32)
    ids = pa.ListArray.from_arrays(offsets, pa.array(tokens.ids))
    per_text = tokens.sentences_per_text
    document = np.repeat(np.arange(len(per_text)), per_text)
    first = np.cumsum(per_text) - per_text
    numbers = (np.arange(n_sentences) - first[document]).astype(np.int32)
    table = pa.table(
        [documents.column("doc_id").take(pa.array(document)), pa.array(numbers), ids], TOKENS
    )
    with (
        atomic_file(shard.tokens()) as file,
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_file(sink, TOKENS) as out,
    ):
        out.write_table(table)
    return len(tokens.ids)


def shards_of(sample_file: Path, folder: Path, language: str) -> Iterator[DocumentShard]:
    """Split the sampled documents into shards. The borders depend on the sample alone. A sample
    without documents becomes one empty shard.
    """
    number = 0
    for batch in pq.ParquetFile(sample_file).iter_batches(
        batch_size=DOCUMENTS_OF_A_BATCH, columns=["doc_id", "text"]
    ):
        # At the edge of a row group, DOCUMENTS_OF_A_BATCH rows may be split over several batches;
        # the same file always gives the same batches.
        ends = np.cumsum(
            pc.binary_length(batch.column("text")).fill_null(0).to_numpy(zero_copy_only=False)
        )
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
            yield DocumentShard(number, folder, batch.slice(start, stop - start), language)
            number = number + 1
            start = stop
    if not number:
        nothing = pa.record_batch([pa.array([], pa.string())] * 2, names=["doc_id", "text"])
        yield DocumentShard(0, folder, nothing, language)


def tokenize_shards(
    sample_file: Path, folder: Path, machine: MachineParams, language: str
) -> list[DocumentShard]:
    """Tokenize every shard of documents that has no token file yet. Return all shards, without the
    texts of their documents.
    """
    total = pq.ParquetFile(sample_file).metadata.num_rows
    shards: list[DocumentShard] = []
    n_documents = 0

    def missing() -> Iterator[DocumentShard]:
        nonlocal n_documents
        for shard in shards_of(sample_file, folder, language):
            shards.append(shard._replace(documents=None))
            if shard.tokens().exists():
                n_documents += shard.documents.num_rows
            else:
                yield shard

    progress = Progress("tokenize", total, "documents")
    for tokenized in ordered_map(
        tokenize_shard, missing(), machine if total > SMALL_CORPUS else machine.alone()
    ):
        progress.advance(*tokenized)
    if n_documents:
        LOG.info(f"tokenize: {n_documents:,} documents were tokenized by an interrupted run")
        progress.advance(n_documents)
    progress.finish()
    for shard in shards:
        expect_file(shard.tokens(), "this process")
    pa.default_memory_pool().release_unused()  # DuckDB comes next and allocates its own memory
    return shards


def number_words(shards: list[DocumentShard], out: Path, work: Path, machine: MachineParams) -> int:
    """Merge the words of all shards into one vocabulary with ids, write the vocabulary and, into
    ``work``, the id of each shard's words; return the number of words.
    """
    with duckdb_session.session(machine) as con:
        duckdb_session.view(con, "shard_words", *(shard.words() for shard in shards))
        n_words = duckdb_session.materialize(con, "corpus/words", out)
        duckdb_session.view(con, "words", out)
        duckdb_session.materialize(con, "corpus/word_ids", work)
    return n_words


def renumber(shards: list[DocumentShard], word_ids: Path, out: Path) -> int:
    """Write the tokens of all shards, in order, with the word ids of the common vocabulary; return
    the number of sentences.
    """
    rows = 0
    numbers = pq.read_table(word_ids, columns=["word_id"]).column(0).to_numpy()
    end = 0
    with atomic_file(out) as file, pq.ParquetWriter(file, TOKENS, **ENCODING) as writer:
        for shard in shards:
            start = end
            end = end + pq.read_metadata(shard.words()).num_rows
            with pa.OSFile(str(shard.tokens())) as source:
                table = pa.ipc.open_file(source).read_all().combine_chunks()
            if not table.num_rows:
                continue
            ids = table.column("ids").chunk(0)
            renumbered = pa.ListArray.from_arrays(
                ids.offsets, pa.array(numbers[start:end][ids.values.to_numpy()])
            )
            writer.write_table(
                pa.table([table.column("doc_id"), table.column("sentence_id"), renumbered], TOKENS),
                row_group_size=table.num_rows,
            )
            rows += table.num_rows
    return rows


def tokenize(
    sample_file: Path, out: Path, words: Path, machine: MachineParams, language: str = DEFAULT
) -> int:
    """Tokenize every sampled document, in the order of the sample, and write the tokens and the
    vocabulary; return the number of sentences.
    """
    text = pq.ParquetFile(sample_file).metadata
    n_bytes = sum(text.row_group(group).total_byte_size for group in range(text.num_row_groups))
    code = ["lexveil.lab.collocations.sampling", "lexveil.core.text"]
    with kept_work(
        machine, "sample_corpus", code, [sample_file], DOCUMENTS_OF_A_BATCH, BATCH_BYTES, language
    ) as work:
        # Two copies of four bytes per token; a token takes five to six bytes of English text, and
        # at least one byte of any text.
        check_disk(work, 1.5 * n_bytes, 8 * n_bytes, "tokenizing")
        shards = tokenize_shards(sample_file, work.resolve(), machine, language)
        n_words = number_words(shards, words, work / "word_ids.parquet", machine)
        n_sentences = renumber(shards, work / "word_ids.parquet", out)
    LOG.info(f"tokenize: {n_sentences:,} sentences, {n_words:,} different words")
    return n_sentences


def count_words(words: Path) -> int:
    """Return the total number of words in the tokenized sample, without punctuation, because a
    document's budget is divided by its number of words.
    """
    table = pq.read_table(words, columns=["word", "count"])
    is_word = [not is_punctuation(word) for word in table.column("word").to_pylist()]
    return int(table.column("count").to_numpy()[is_word].sum())
