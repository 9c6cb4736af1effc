"""Choose the documents to learn from and tokenize them once: data/corpus -> corpus/{sample,sentences}.parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import MissingArtifact
from tasks.io import duck, paths
from tasks.io.params import Params, load_params
from tasks.io.pool import ordered_map
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import PARQUET, atomic_file
from tasks.text.tokenize import sentences

SCHEMA = pa.schema([("doc_id", pa.string()), ("sentence_id", pa.int32()), ("tokens", pa.string())])
BATCH = 5_000  # documents tokenized at a time; also one row group of sentences.parquet
SMALL = 20_000  # documents below which starting worker processes costs more than it saves


def sample(corpus: Path, out: Path, params: Params) -> int:
    """Write the sampled documents and return how many there are.

    Raises:
        MissingArtifact: if there are no shards.
    """
    shards = sorted(corpus.glob("*.json.gz"))
    if not shards:
        raise MissingArtifact(
            f"{corpus} holds no *.json.gz shard; `lexveil data default` or `lexveil data use --corpus PATH` brings some"
        )
    with duck.session(params.machine) as con:
        con.execute(
            f"create temp view corpus as select text from read_json({duck.file_list(shards)}, "
            "columns = {text: 'varchar'}, format = 'newline_delimited', maximum_object_size = 134217728)"
        )
        return duck.materialize(con, "corpus_sample", out, seed=params.seed, max_documents=params.sample.max_documents)


def tokenize_batch(batch: pa.RecordBatch) -> pa.Table:
    """Tokenize documents (doc_id, text) into sentences (doc_id, sentence_id, tokens)."""
    doc_ids: list[str] = []
    numbers: list[int] = []
    lines: list[str] = []
    for doc_id, text in zip(batch.column("doc_id").to_pylist(), batch.column("text").to_pylist(), strict=True):
        for number, tokens in enumerate(sentences(text)):
            doc_ids.append(doc_id)
            numbers.append(number)
            lines.append(" ".join(tokens))
    return pa.table(
        [pa.array(doc_ids, pa.string()), pa.array(numbers, pa.int32()), pa.array(lines, pa.string())], SCHEMA
    )


def tokenize(sample_file: Path, out: Path, workers: int) -> int:
    """Write the tokens of every sampled document, in the sample's order; return the number of sentences."""
    source = pq.ParquetFile(sample_file)
    total = source.metadata.num_rows
    progress = Progress("tokenize", total, "documents")

    def batches() -> Iterator[pa.RecordBatch]:
        yield from source.iter_batches(batch_size=BATCH, columns=["doc_id", "text"])

    rows = done = 0
    with atomic_file(out) as partial, pq.ParquetWriter(partial, SCHEMA, **PARQUET) as writer:
        for table in ordered_map(tokenize_batch, batches(), workers if total > SMALL else 1):
            writer.write_table(table, row_group_size=max(1, table.num_rows))
            rows += table.num_rows
            step = min(BATCH, total - done)
            done += step
            progress.advance(step)
    progress.finish()
    return rows


def main() -> None:
    """Run the stage."""
    params = load_params()
    n = sample(paths.CORPUS, paths.SAMPLE, params)
    n_sentences = tokenize(paths.SAMPLE, paths.SENTENCES, params.machine.workers)
    print(f"sampled {n:,} documents, {n_sentences:,} sentences")


if __name__ == "__main__":
    stage_main(main)
