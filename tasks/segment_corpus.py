"""Cut the corpus into the tokens of one segmentation: tokens + collocations -> segmented/SEGMENTATION.txt."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.errors import RequestError
from tasks.io import paths
from tasks.io.collocations import load_collocations
from tasks.io.stage import Progress, stage_main
from tasks.io.tables import atomic_file, read_table, require, write_json
from tasks.text.segment import SEGMENTATIONS, Bytes, Collocations, Ids, segment, write_lines

BATCH = 50_000  # sentences cut at a time; bounds memory, changes nothing else


def word_bytes(words: pa.LargeStringArray) -> tuple[Bytes, Ids]:
    """The UTF-8 of all words, one after another, and the (n + 1,) places where each starts, without copying."""
    _, places, content = words.buffers()
    starts = np.frombuffer(places, np.int64)[words.offset : words.offset + len(words) + 1]
    return np.frombuffer(content or b"", np.uint8), starts


def segment_file(
    tokens: Path, words: Path, out: Path, segmentation: str, collocations: Collocations | None
) -> dict[str, float]:
    """Write one sentence per line, tokens separated by a space, words of a token joined by ``_``.

    Args:
        tokens: (doc_id, sentence_id, ids), one row per sentence.
        words: (word_id, word, …), the word of each number.

    Returns:
        How many sentences, words and tokens of one, two and three words were written, and the total PMI in bits.
    """
    source = pq.ParquetFile(tokens)
    vocabulary = read_table(words, "sample_corpus", ["word"]).column("word").cast(pa.large_string()).combine_chunks()
    spelled, starts = word_bytes(vocabulary)
    # What each word is to the look-up, worked out once: from here on words are numbers until they are written.
    number = None if collocations is None else collocations.ids(vocabulary.to_pylist())
    totals = np.zeros(4, dtype=np.int64)
    pmi_bits, n_sentences = 0.0, 0
    progress = Progress(f"segment {segmentation}", source.metadata.num_rows, "sentences")
    with atomic_file(out) as partial, partial.open("wb") as lines:
        for batch in source.iter_batches(batch_size=BATCH, columns=["ids"]):
            lists = batch.column("ids")
            ids = lists.flatten().to_numpy()
            offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy(), dtype=np.int64)])
            if collocations is None or number is None:
                lengths = np.ones(len(ids), dtype=np.int8)
            else:
                pair, triple = collocations.scores(number[ids], offsets)
                lengths = segment(segmentation, pair, triple, offsets)
                pmi_bits += float(pair[lengths == 2].sum() + triple[lengths == 3].sum())
            lines.write(write_lines(spelled, starts, ids, lengths, offsets).data)
            totals += np.bincount(lengths, minlength=4)[:4]
            n_sentences += len(lists)
            progress.advance(len(lists), len(ids))
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
    tokens, words = require(paths.TOKENS, "sample_corpus"), require(paths.WORDS, "sample_corpus")
    totals = segment_file(tokens, words, paths.segmented(segmentation), segmentation, collocations)
    write_json(totals, paths.METRICS / "segmented" / f"{segmentation}.json")


if __name__ == "__main__":
    stage_main(main)
