"""Pipeline stage that collects sentences of the sampled corpus for a sentence bank:
corpus/sample.parquet, the words of the gst embedding (gst: collocations cut greedily) ->
sentences.parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.runtime.tables import require, write_table
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.config import MachineParams, Params, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import stage_main
from lexveil.lab.data.public_sentences import NONE, PublicTexts, choose
from lexveil.lab.data.sentence_choice import choice_of

SEGMENTATION = "gst"
DOCUMENTS = 1_000  # number of texts that are cut at a time


def sampled(sample: Path, weights: Mapping[str, float]) -> Iterator[PublicTexts]:
    """Yield the documents of the corpus sample, with the weights of their sources."""
    file = pq.ParquetFile(sample)
    for batch in file.iter_batches(DOCUMENTS, columns=["text", "source"]):
        of_source = [weights.get(source, 1.0) for source in batch.column("source").to_pylist()]
        yield PublicTexts(batch.column("text").to_pylist(), of_source)


def run(params: Params, machine: MachineParams, out: Path) -> int:
    """Write the suitable sentences to ``out`` and return their number, which is 0 without an
    embedding for the segmentation gst.
    """
    sentences = NONE
    if SEGMENTATION in params.grid.segmentations:
        lexicon = load_lexicon(SEGMENTATION, Path(), params.model.language)
        choice = choice_of(params.sentences, params.seed)
        texts = sampled(require(paths.SAMPLE, "sample_corpus"), params.sample.weights)
        with duckdb_session.session(machine) as con:
            sentences = choose(con, texts, lexicon, choice)
    write_table(sentences, out)
    return len(sentences)


def main() -> None:
    """Run this stage of the DVC pipeline: write the suitable sentences."""
    n_sentences = run(load_params(), load_configuration().machine, paths.SENTENCES)
    print(f"collected {n_sentences:,} sentences")


if __name__ == "__main__":
    stage_main(main, pandas=False)
