"""Cut the corpus into the tokens of one segmentation: sentences + collocations -> segmented/SEGMENTATION.txt."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tasks.errors import RequestError
from tasks.io import paths
from tasks.io.collocations import load_collocations
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import atomic_file, require, write_json
from tasks.text.segment import SEGMENTATIONS, Collocations, join_tokens, segment

BATCH = 50_000  # sentences cut at a time; bounds memory, changes nothing else


def segment_file(sentences: Path, out: Path, segmentation: str, collocations: Collocations | None) -> dict[str, float]:
    """Write one sentence per line, tokens separated by a space, words of a token joined by ``_``.

    Returns:
        How many sentences, words and tokens of one, two and three words were written, and the total PMI in bits.
    """
    source = pq.ParquetFile(sentences)
    totals = np.zeros(4, dtype=np.int64)
    pmi_bits, n_sentences = 0.0, 0
    progress = Progress(f"segment {segmentation}", source.metadata.num_rows, "sentences")
    with atomic_file(out) as partial, partial.open("w", encoding="utf-8", newline="\n") as lines:
        for batch in source.iter_batches(batch_size=BATCH, columns=["tokens"]):
            split = [line.split(" ") for line in batch.column("tokens").to_pylist()]
            words = [word for sentence in split for word in sentence]
            offsets = np.cumsum([0, *map(len, split)])
            if collocations is None:
                lengths = np.ones(len(words), dtype=np.int8)
            else:
                pair, triple = collocations.scores(collocations.ids(words), offsets)
                lengths = segment(segmentation, pair, triple, offsets)
                pmi_bits += float(pair[lengths == 2].sum() + triple[lengths == 3].sum())
            lines.write(join_tokens(words, lengths, offsets))
            totals += np.bincount(lengths, minlength=4)[:4]
            n_sentences += len(split)
            progress.advance(len(split), len(words))
    progress.finish()
    return {
        "n_sentences": n_sentences,
        "n_words": int(totals.sum()),
        "n_tokens": int(totals[1:].sum()),
        "n_unigram_tokens": int(totals[1]),
        "n_bigram_tokens": int(totals[2]),
        "n_trigram_tokens": int(totals[3]),
        "pmi_bits": round(pmi_bits, 3),
    }


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    if len(sys.argv) != 2 or sys.argv[1] not in SEGMENTATIONS:
        raise RequestError(f"usage: python -m tasks.segment_corpus {'|'.join(SEGMENTATIONS)}")
    segmentation = sys.argv[1]
    collocations = None if segmentation == "word" else load_collocations()
    sentences = require(paths.SENTENCES, "sample_corpus")
    totals = segment_file(sentences, paths.segmented(segmentation), segmentation, collocations)
    write_json(totals, paths.METRICS / "segmented" / f"{segmentation}.json")


if __name__ == "__main__":
    stage_main(main)
