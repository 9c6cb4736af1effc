"""Compiled segmentation of batches of sentences."""

from __future__ import annotations

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Ids, Lengths


@kernel()
def gst(pair_score: Floats, triple_score: Floats) -> Lengths:  # pragma: no cover - compiled
    """Segment sentences by Greedy Sequential Tokenization (CLMLDP Algorithm 1): scan from left to
    right and take the longest collocation at each position.
    """
    n = len(pair_score)
    lengths = np.zeros(n, dtype=np.int8)
    i = 0
    while i < n:
        step = 3 if triple_score[i] > -np.inf else (2 if pair_score[i] > -np.inf else 1)
        lengths[i] = step
        i += step
    return lengths


@kernel()
def take(starts: Ids, sizes: Ids, lengths: Lengths) -> None:  # pragma: no cover - compiled
    """Accept candidate collocations in the given order, each if all of its word positions are
    free, and write their lengths. A position is free while its length is 1.
    """
    for c in range(len(starts)):
        first = starts[c]
        size = sizes[c]
        if lengths[first] == 1 and lengths[first + 1] == 1 and lengths[first + size - 1] == 1:
            lengths[first] = size
            lengths[first + 1] = 0
            lengths[first + size - 1] = 0


@kernel()
def mst_exact(
    pair_score: Floats, triple_score: Floats, sentence_offsets: Ids
) -> Lengths:  # pragma: no cover
    """Segment sentences with the largest total PMI, by dynamic programming from the right. On a
    tie, the longer token wins.
    """
    lengths = np.ones(len(pair_score), dtype=np.int8)
    for s in range(len(sentence_offsets) - 1):
        start = sentence_offsets[s]
        end = sentence_offsets[s + 1]
        # Best totals from 1, 2 and 3 positions on. They are reset in every sentence, so that
        # rounding does not depend on the batch around it.
        after_1 = 0.0
        after_2 = 0.0
        after_3 = 0.0
        for i in range(end - 1, start - 1, -1):
            total = after_1
            with_pair = pair_score[i] + after_2
            with_triple = triple_score[i] + after_3
            if with_pair >= total:
                total = with_pair
                lengths[i] = 2
            if with_triple >= total:
                total = with_triple
                lengths[i] = 3
            after_3 = after_2
            after_2 = after_1
            after_1 = total
        i = start
        while i < end:
            for inside in range(i + 1, i + lengths[i]):
                lengths[inside] = 0
            i += lengths[i]
    return lengths
