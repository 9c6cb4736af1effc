"""Three ways to cut a sentence into words and collocations: gst, mst, mst_exact (CLMLDP section 4.1.2).

All three work on a whole batch of sentences at once, on integer word ids: a batch is the ids of its sentences one
after another, and the offsets at which the sentences start. The kernels turn the scores of ``Collocations.scores``
into token lengths. Since no candidate crosses a boundary, cutting the batch is the same as cutting each sentence alone.
"""

from __future__ import annotations

import numpy as np

from lexveil.text.collocation_index import WordIds, check_offsets
from lexveil.types import Bytes, Floats, Ids, Lengths

SEGMENTATIONS = ("word", "gst", "mst", "mst_exact")
TRAINED = SEGMENTATIONS[:3]  # those that a project trains embeddings of


def segment(segmentation: str, pair_score: Floats, triple_score: Floats, sentence_offsets: Ids) -> Lengths:
    """Token lengths of a batch of sentences.

    Args:
        segmentation: one of SEGMENTATIONS.
        pair_score, triple_score: (n,) from ``Collocations.scores``.
        sentence_offsets: (n_sentences + 1,) where each sentence starts; only mst_exact looks at them.

    Returns:
        (n,) int8: at the first word of a token its length in words (1 to 3), 0 inside a token.
    """
    if segmentation == "word":
        return np.ones(len(pair_score), dtype=np.int8)
    from lexveil.text.kernels import segments

    if segmentation == "gst":
        return segments.gst(pair_score, triple_score)
    if segmentation == "mst":
        return segments.mst(pair_score, triple_score)
    if segmentation == "mst_exact":
        check_offsets(sentence_offsets, len(pair_score))
        return segments.mst_exact(pair_score, triple_score, sentence_offsets)
    raise ValueError(f"unknown segmentation {segmentation!r}")


def write_lines(word_bytes: Bytes, word_offsets: Ids, ids: WordIds, lengths: Lengths, sentence_offsets: Ids) -> Bytes:
    """Sentences as lines of UTF-8: ``_`` joins the words of a token, a space tokens, a line feed ends a sentence.

    A sentence without words has no line. From word ids and a table of words, so that no Python string is made.

    Args:
        word_bytes: the words of all ids one after another, UTF-8.
        word_offsets: (n_words + 1,) where each word starts in ``word_bytes`` (as in an Arrow string array).
        ids: (n,) int32 or int64, each in [0, n_words).
        lengths: (n,) token lengths.
        sentence_offsets: (n_sentences + 1,) where each sentence starts.
    """
    check_offsets(sentence_offsets, len(ids))
    if len(ids) and not 0 <= ids.min() <= ids.max() < len(word_offsets) - 1:
        raise ValueError(f"word ids must be in [0, {len(word_offsets) - 1})")
    from lexveil.text.kernels.segments import write, written

    out = np.empty(written(word_offsets, ids), dtype=np.uint8)
    write(word_bytes, word_offsets, ids, lengths, sentence_offsets, out)
    return out
