"""The segmentations of many words, and their tokens as lines."""

from __future__ import annotations

import numba
import numpy as np

from lexveil.text.collocation_index import WordIds
from lexveil.types import Bytes, Floats, Ids, Lengths

_SHORT = 48  # candidates that are put in order by insertion; more of them are sorted


@numba.njit(cache=True)
def gst(pair_score: Floats, triple_score: Floats) -> Lengths:  # pragma: no cover - compiled
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
def mst(pair_score: Floats, triple_score: Floats) -> Lengths:  # pragma: no cover - compiled
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
def mst_exact(pair_score: Floats, triple_score: Floats, sentence_offsets: Ids) -> Lengths:  # pragma: no cover
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


@numba.njit(cache=True)
def written(word_offsets: Ids, ids: WordIds) -> int:  # pragma: no cover - compiled
    """How many bytes the words take, each with what follows it."""
    total = len(ids)
    for i in range(len(ids)):
        total += word_offsets[ids[i] + 1] - word_offsets[ids[i]]
    return total


@numba.njit(cache=True)
def write(
    word_bytes: Bytes, word_offsets: Ids, ids: WordIds, lengths: Lengths, sentence_offsets: Ids, out: Bytes
) -> None:  # pragma: no cover - compiled
    """Write what ``segment.write_lines`` gives."""
    at = 0
    for s in range(len(sentence_offsets) - 1):
        end = sentence_offsets[s + 1]
        for i in range(sentence_offsets[s], end):
            for k in range(word_offsets[ids[i]], word_offsets[ids[i] + 1]):
                out[at] = word_bytes[k]
                at += 1
            out[at] = 10 if i + 1 == end else (95 if lengths[i + 1] == 0 else 32)  # line feed, _ or space
            at += 1
