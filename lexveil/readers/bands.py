"""Frequency bands of a vocabulary: function words, and frequent, middle and rare words among all
others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexveil.base.types import Bytes, Counts, Flags, Floats

BANDS = ("function", "frequent", "middle", "rare")
# groups of bands: all words, and all words but function words
ALL = "all"
CONTENT = "content"
BANDS_OF = {ALL: BANDS, CONTENT: BANDS[1:]} | {band: (band,) for band in BANDS}
# Share of the frequent words in the occurrences of content words (all but function words),
# up,
FREQUENT = 0.6
# and share of the frequent and middle words together; all other words are rare.
MIDDLE = 0.9
# number added to each count, so that the probability of a word with count 0 is not 0
SMOOTHING = 0.5


def bands_of(counts: Counts, is_function: Flags) -> Bytes:
    """Return the frequency band of each of V words, as an index into ``BANDS``; shape (V,).

    Args:
        counts: (V,) occurrences in a public corpus.
        is_function: (V,) whether the word is a function word (a stop word).
    """
    bands = np.zeros(len(counts), dtype=np.uint8)
    others = np.flatnonzero(~is_function)
    # Words of equal counts keep their order, so that the bands are the same on every machine.
    ordered = others[np.argsort(-counts[others], kind="stable")]
    weights = counts[ordered] + SMOOTHING
    before = (np.cumsum(weights) - weights) / max(weights.sum(), 1.0)
    bands[ordered] = 1 + (before >= FREQUENT).astype(np.uint8) + (before >= MIDDLE)
    return bands


def prior_of(counts: Counts) -> Floats:
    """Return the prior probability of each of V words, computed from public counts; the result (V,)
    adds up to 1.
    """
    smoothed = counts + SMOOTHING
    prior: Floats = smoothed / smoothed.sum()
    return prior


def function_words(tokens: Sequence[str], stop_words: frozenset[str]) -> Flags:
    """Return (n,) whether each token is a function word: a stop word, or a multi-word collocation
    of stop words only.
    """
    return np.array([stop_words.issuperset(token.split("_")) for token in tokens], dtype=np.bool_)
