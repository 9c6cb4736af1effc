"""Segmentation of the corpus into tokens (words or collocations), one row group after another, in
any process.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base.runtime.tables import atomic_file, read_table
from lexveil.base.types import Ids
from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.segment import segment, write_lines
from lexveil.io.config import MachineParams
from lexveil.io.execution.checkpoints import expect_file
from lexveil.io.execution.pool import ordered_map
from lexveil.io.execution.stage import Progress

SENTENCES_AT_A_TIME = 50_000  # sentences cut at a time; bounds memory, changes nothing else


class Cut(NamedTuple):
    """One segmented row group: its lines, its number of words by token length (as ``segment``
    returns it), and the total PMI of each batch.
    """

    lines: list[bytes]
    lengths: npt.NDArray[np.int64]
    pmi_bits: list[float]


@dataclass(frozen=True, slots=True)
class Segmenter:
    """Callable that segments one row group of the corpus into tokens; it can be sent to any
    process.

    Attributes:
        words: the word of each word id.
        number: the id in ``collocations`` of each word id. ``number`` and ``collocations`` are None
            if every word is a token.
    """

    tokens: Path
    segmentation: str
    words: pa.LargeStringArray
    number: Ids | None
    collocations: Collocations | None

    def __call__(self, group: int) -> Cut:
        """Segment a row group of the corpus, one batch of sentences at a time."""
        expect_file(self.tokens, "this worker")
        source = pq.ParquetFile(self.tokens)
        written = []
        totals = np.zeros(4, dtype=np.int64)
        pmi_bits = []
        for batch in source.iter_batches(
            batch_size=SENTENCES_AT_A_TIME, row_groups=[group], columns=["ids"]
        ):
            lists = batch.column("ids")
            ids = lists.flatten().to_numpy()
            offsets = np.concatenate(
                [[0], np.cumsum(pc.list_value_length(lists).to_numpy(), dtype=np.int64)]
            )
            if self.collocations is None or self.number is None:
                lengths = np.ones(len(ids), dtype=np.int8)
            else:
                pair, triple = self.collocations.scores(self.number[ids], offsets)
                lengths = segment(self.segmentation, pair, triple, offsets)
                pmi_bits.append(float(pair[lengths == 2].sum() + triple[lengths == 3].sum()))
            written.append(write_lines(self.words, ids, lengths, offsets))
            totals += np.bincount(lengths, minlength=4)[:4]
        return Cut(written, totals, pmi_bits)


def segment_file(
    tokens: Path,
    words: Path,
    out: Path,
    segmentation: str,
    collocations: Collocations | None,
    machine: MachineParams | int = 1,
) -> dict[str, float]:
    """Segment a tokenized corpus and write one sentence per line, with a space between tokens and
    ``_`` between the words of a token.

    Args:
        tokens: (doc_id, sentence_id, ids), one row per sentence.
        words: (word_id, word, …), the word of each number.
        machine: settings of the workers that cut the row groups; the settings change no byte.

    Returns:
        The number of sentences, of words, and of tokens of one, two and three words, and the total
            PMI in bits.
    """
    meta = pq.read_metadata(tokens)
    vocabulary = (
        read_table(words, "sample_corpus", ["word"])
        .column("word")
        .cast(pa.large_string())
        .combine_chunks()
    )
    # The collocation id of each word is looked up once: from here on words are numbers until they
    # are written.
    number = None if collocations is None else collocations.ids(vocabulary.to_pylist())
    # workers need word numbers only, not the words as text
    merged = None if collocations is None else replace(collocations, word_ids={})
    segmenter = Segmenter(tokens.resolve(), segmentation, vocabulary, number, merged)
    totals = np.zeros(4, dtype=np.int64)
    pmi_bits = 0.0
    progress = Progress(f"segment {segmentation}", meta.num_rows, "sentences")
    with (
        atomic_file(out) as partial,
        partial.open("wb") as lines,
        closing(ordered_map(segmenter, range(meta.num_row_groups), machine)) as parts,
    ):
        for group, part in enumerate(parts):
            lines.writelines(part.lines)
            totals += part.lengths
            # added in a fixed order, because the order of additions changes the last digits
            for bits in part.pmi_bits:
                pmi_bits += bits
            progress.advance(meta.row_group(group).num_rows, int(part.lengths.sum()))
    progress.finish()
    return {
        "n_sentences": meta.num_rows,
        "n_words": int(totals.sum()),
        "n_tokens": int(totals[1:].sum()),
        "n_unigram_tokens": int(totals[1]),
        "n_bigram_tokens": int(totals[2]),
        "n_trigram_tokens": int(totals[3]),
        "pmi_bits": round(pmi_bits, 3),
    }
