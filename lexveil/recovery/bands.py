"""Frequency bands of a vocabulary: function words, and frequent, middle and rare ones among all
others.
"""

from __future__ import annotations

import numpy as np

from lexveil.types import Bytes, Counts, Flags, Floats

BANDS = ("function", "frequent", "middle", "rare")
ALL, CONTENT = "all", "content"  # bands together: all words, and all but the function words
BANDS_OF = {ALL: BANDS, CONTENT: BANDS[1:]} | {band: (band,) for band in BANDS}
# Of the occurrences of words that are no function words, those of the most frequent words make up
# so much ...
FREQUENT = 0.6
# ... and with the middle ones so much; the rest are rare.
MIDDLE = 0.9
SMOOTHING = 0.5  # occurrences added to each word: one that was never counted can still be meant


def bands_of(counts: Counts, is_function: Flags) -> Bytes:
    """The band of each of V words, as a number in ``BANDS``; shape (V,).

    Args:
        counts: (V,) occurrences in a public corpus.
        is_function: (V,) whether it is a function word (a stop word).
    """
    bands = np.zeros(len(counts), dtype=np.uint8)
    others = np.flatnonzero(~is_function)
    # Equal counts in the order of the words, so that the bands are the same on every machine.
    ordered = others[np.argsort(-counts[others], kind="stable")]
    weights = counts[ordered] + SMOOTHING
    before = (np.cumsum(weights) - weights) / max(weights.sum(), 1.0)
    bands[ordered] = 1 + (before >= FREQUENT).astype(np.uint8) + (before >= MIDDLE)
    return bands


def prior_of(counts: Counts) -> Floats:
    """How likely each of V words is before anything is seen, from their public counts; (V,), adding
    up to 1.
    """
    smoothed = counts + SMOOTHING
    prior: Floats = smoothed / smoothed.sum()
    return prior
