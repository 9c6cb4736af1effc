"""Three ways to cut a sentence into words and collocations: gst, mst, mst_exact (CLMLDP section 4.1.2).

All three work on a whole batch of sentences at once, on integer word ids: a batch is the ids of its sentences one
after another, and the offsets at which the sentences start. The kernels turn the scores of ``Collocations.scores``
into token lengths. Since no candidate crosses a boundary, cutting the batch is the same as cutting each sentence alone.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from lexveil.text.collocation_index import WordIds, check_offsets
from lexveil.types import Bytes, Floats, Ids

Lengths = npt.NDArray[np.int8]

SEGMENTATIONS = ("word", "gst", "mst", "mst_exact")

_SHORT = 48  # candidates that are put in order by insertion; more of them are sorted


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
    if segmentation == "gst":
        return _gst(pair_score, triple_score)
    if segmentation == "mst":
        return _mst(pair_score, triple_score)
    if segmentation == "mst_exact":
        check_offsets(sentence_offsets, len(pair_score))
        return _mst_exact(pair_score, triple_score, sentence_offsets)
    raise ValueError(f"unknown segmentation {segmentation!r}")


@numba.njit(cache=True)
def _gst(pair_score: Floats, triple_score: Floats) -> Lengths:  # pragma: no cover - compiled
    """Greedy Sequential Tokenization (CLMLDP Algorithm 1): left to right, the longest collocation first."""
    n = len(pair_score)
    lengths = np.zeros(n, dtype=np.int8)
    i = 0
    while i < n:
        step = 3 if triple_score[i] > -np.inf else (2 if pair_score[i] > -np.inf else 1)
        lengths[i] = step
        i += step
    return lengths


@numba.njit(cache=True)
def _mst(pair_score: Floats, triple_score: Floats) -> Lengths:  # pragma: no cover - compiled
    """Max Score Tokenization (CLMLDP Algorithm 2): by falling score, take a candidate iff all its positions are free.

    Ties: longer first, then leftmost. Only candidates that overlap, directly or through others, can stand in each
    other's way: each such run is put in order by itself, which gives the same as ordering the sentence.
    """
    n = len(pair_score)
    lengths = np.ones(n, dtype=np.int8)
    start, size, score = np.empty(_SHORT, np.int64), np.empty(_SHORT, np.int64), np.empty(_SHORT)
    i = 0
    while i < n:
        if pair_score[i] == -np.inf and triple_score[i] == -np.inf:
            i += 1
            continue
        first, end = i, i + 1  # the run covers [first, end)
        m = 0
        while i < end:
            for length in (3, 2):
                value = triple_score[i] if length == 3 else pair_score[i]
                if value == -np.inf:
                    continue
                end = max(end, i + length)
                if m < _SHORT:
                    # What stands already is further left, or longer at the same place: it goes first if all is equal.
                    k = m
                    while k > 0 and (score[k - 1] < value or (score[k - 1] == value and size[k - 1] < length)):
                        start[k], size[k], score[k] = start[k - 1], size[k - 1], score[k - 1]
                        k -= 1
                    start[k], size[k], score[k] = i, length, value
                m += 1
            i += 1
        if m <= _SHORT:
            _take(start, size, m, lengths)
        else:
            _take_sorted(pair_score, triple_score, first, end, m, lengths)
    return lengths


@numba.njit(cache=True)
def _take(starts: Ids, sizes: Ids, n: int, lengths: Lengths) -> None:  # pragma: no cover - compiled
    """Take the first ``n`` candidates in their order; a position is free while its length is 1."""
    for c in range(n):
        first, size = starts[c], sizes[c]
        if lengths[first] == 1 and lengths[first + 1] == 1 and lengths[first + size - 1] == 1:
            lengths[first] = size
            lengths[first + 1] = 0
            lengths[first + size - 1] = 0


@numba.njit(cache=True)
def _take_sorted(
    pair_score: Floats, triple_score: Floats, first: int, end: int, n: int, lengths: Lengths
) -> None:  # pragma: no cover - compiled
    """Take the ``n`` candidates of a long run, where insertion would need time by the square of ``n``."""
    start, size, score = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    m = 0
    for length in (3, 2):  # longer first, leftmost first: a stable sort keeps it within ties
        for i in range(first, end):
            value = triple_score[i] if length == 3 else pair_score[i]
            if value > -np.inf:
                start[m], size[m], score[m] = i, length, -value
                m += 1
    order = np.argsort(score, kind="mergesort")
    _take(start[order], size[order], n, lengths)


@numba.njit(cache=True)
def _mst_exact(pair_score: Floats, triple_score: Floats, sentence_offsets: Ids) -> Lengths:  # pragma: no cover
    """The segmentation of largest total PMI, by dynamic programming from the right; ties: the longer token."""
    lengths = np.ones(len(pair_score), dtype=np.int8)
    for s in range(len(sentence_offsets) - 1):
        start, end = sentence_offsets[s], sentence_offsets[s + 1]
        # Best totals from 1, 2 and 3 positions on. They start afresh in every sentence, so that rounding does not
        # depend on the batch around it.
        after_1, after_2, after_3 = 0.0, 0.0, 0.0
        for i in range(end - 1, start - 1, -1):
            total = after_1
            with_pair, with_triple = pair_score[i] + after_2, triple_score[i] + after_3
            if with_pair >= total:
                total = with_pair
                lengths[i] = 2
            if with_triple >= total:
                total = with_triple
                lengths[i] = 3
            after_1, after_2, after_3 = total, after_1, after_2
        i = start
        while i < end:
            for inside in range(i + 1, i + lengths[i]):
                lengths[inside] = 0
            i += lengths[i]
    return lengths


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
    out = np.empty(_written(word_offsets, ids), dtype=np.uint8)
    _write(word_bytes, word_offsets, ids, lengths, sentence_offsets, out)
    return out


@numba.njit(cache=True)
def _written(word_offsets: Ids, ids: WordIds) -> int:  # pragma: no cover - compiled
    """How many bytes the words take, each with what follows it."""
    total = len(ids)
    for i in range(len(ids)):
        total += word_offsets[ids[i] + 1] - word_offsets[ids[i]]
    return total


@numba.njit(cache=True)
def _write(
    word_bytes: Bytes, word_offsets: Ids, ids: WordIds, lengths: Lengths, sentence_offsets: Ids, out: Bytes
) -> None:  # pragma: no cover - compiled
    at = 0
    for s in range(len(sentence_offsets) - 1):
        end = sentence_offsets[s + 1]
        for i in range(sentence_offsets[s], end):
            for k in range(word_offsets[ids[i]], word_offsets[ids[i] + 1]):
                out[at] = word_bytes[k]
                at += 1
            out[at] = 10 if i + 1 == end else (95 if lengths[i + 1] == 0 else 32)  # line feed, _ or space
            at += 1
