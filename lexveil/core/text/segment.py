"""Segmentation of sentences into words and collocations, in three ways: gst, mst, mst_exact
(CLMLDP section 4.1.2).

All three process a whole batch of sentences at once, as integer word ids. A batch consists of the
ids of its sentences one after another, and the offsets at which the sentences start. The kernels
turn the scores of ``Collocations.scores`` into token lengths. Since no candidate crosses a
boundary, cutting the batch is the same as cutting each sentence alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.types import Floats, Ids, Lengths
from lexveil.core.text.collocation_index import WordIds, check_offsets
from lexveil.core.text.strings import letters_of

SEGMENTATIONS = ("word", "gst", "mst", "mst_exact")


def segment(
    segmentation: str, pair_score: Floats, triple_score: Floats, sentence_offsets: Ids
) -> Lengths:
    """Segment a batch of sentences into words and collocations, and return the length of each
    token.

    Args:
        segmentation: one of SEGMENTATIONS.
        pair_score, triple_score: (n,) from ``Collocations.scores``.
        sentence_offsets: (n_sentences + 1,) the first word of each sentence; only mst_exact uses
            them.

    Returns:
        (n,) int8: the length of a token in words (1 to 3) at its first word, and 0 at its other
        words.
    """
    lengths = np.ones(len(pair_score), dtype=np.int8)
    if segmentation == "word":
        return lengths
    from lexveil.core.text.kernels import segments

    if segmentation == "gst":
        return segments.gst(pair_score, triple_score)
    if segmentation == "mst":
        # Max Score Tokenization (CLMLDP Algorithm 2): candidates by falling score; on a tie the
        # longer candidate wins, then the leftmost one.
        triples = np.flatnonzero(triple_score > -np.inf)
        pairs = np.flatnonzero(pair_score > -np.inf)
        order = np.argsort(
            -np.concatenate([triple_score[triples], pair_score[pairs]]), kind="stable"
        )
        sizes = np.repeat([3, 2], [len(triples), len(pairs)])
        segments.take(np.concatenate([triples, pairs])[order], sizes[order], lengths)
        return lengths
    if segmentation == "mst_exact":
        check_offsets(sentence_offsets, len(pair_score))
        return segments.mst_exact(pair_score, triple_score, sentence_offsets)
    raise ValueError(f"unknown segmentation {segmentation!r}")


def write_lines(
    words: pa.LargeStringArray, ids: WordIds, lengths: Lengths, sentence_offsets: Ids
) -> bytes:
    """Format segmented sentences as lines of UTF-8: ``_`` joins the words of a token, a space
    separates tokens, a line feed ends a sentence.

    A sentence without words gets no line. Arrow writes the lines, so that no Python strings are
    created.

    Args:
        words: the word of each id.
        ids: (n,) int32 or int64, each in [0, len(words)).
        lengths: (n,) token lengths.
        sentence_offsets: (n_sentences + 1,) the first word of each sentence.
    """
    check_offsets(sentence_offsets, len(ids))
    after = (np.append(lengths[1:], 1)[: len(ids)] == 0).astype(np.int8)
    after[sentence_offsets[1:][np.diff(sentence_offsets) > 0] - 1] = 2
    joints = pa.array([" ", "_", "\n"], pa.large_string()).take(pa.array(after))
    parts = pc.binary_join_element_wise(
        words.take(pa.array(ids)), joints, pa.scalar("", pa.large_string())
    )
    letters, offsets = letters_of(parts)
    return letters[offsets[0] : offsets[-1]].tobytes()
