"""How far the words of a mechanism lie apart, in the metric of its guarantee: what its bounds are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lexveil.mechanisms.base import Kernel
from lexveil.mechanisms.noise.streams import stream
from lexveil.types import Floats, Ids

SEED = 20261  # public, so that everybody finds the same figures
WORDS = 384  # that are measured against all others
EXTREME = 64  # more of them, of either kind: those that lie alone, and those that lie far out
BLOCK = 64  # words whose distances to all others are held at a time


class Spread(NamedTuple):
    """The median and the largest of the words' distances."""

    median: float
    worst: float


class WordDistances(NamedTuple):
    """Distances of a word to its nearest other word, to a middling one (the median) and to one drawn at random.

    Medians are over ``WORDS`` words drawn from a public seed; the worst are over those and over the words that these
    found farthest off, since extremes are hardly ever drawn.
    """

    nearest: Spread
    middle: Spread
    random: Spread


def word_distances(mechanism: Kernel) -> WordDistances | None:
    """Measure the words of a mechanism; None of fewer than two words."""
    n = mechanism.size
    if n < 2:
        return None
    rng = stream(SEED, "distances")
    drawn = np.sort(rng.choice(n, min(WORDS, n), replace=False)).astype(np.int64)
    some = _Rows(mechanism, drawn)
    far = np.argsort(-some.least_of_all, kind="stable")[:EXTREME], np.argsort(-some.sum_of_all, kind="stable")[:EXTREME]
    extreme = _Rows(mechanism, np.setdiff1d(np.concatenate(far), drawn).astype(np.int64))
    partners = (drawn + 1 + rng.integers(n - 1, size=len(drawn))) % n  # never the word itself

    def spread(medians: Floats, name: str) -> Spread:
        worst = max(float(getattr(rows, name).max(initial=0.0)) for rows in (some, extreme))
        return Spread(float(np.median(medians)), worst)

    return WordDistances(
        spread(some.nearest, "nearest"),
        spread(some.middle, "middle"),
        spread(mechanism.distance(drawn, partners.astype(np.int64)), "farthest"),
    )


class _Rows:
    """Some words' distances: to the nearest, median and farthest other word, (n,); and of all words to these, (W,)."""

    def __init__(self, mechanism: Kernel, words: Ids) -> None:
        self.nearest, self.middle, self.farthest = (np.empty(len(words)) for _ in range(3))
        self.least_of_all, self.sum_of_all = np.full(mechanism.size, np.inf), np.zeros(mechanism.size)
        for start in range(0, len(words), BLOCK):
            block = words[start : start + BLOCK]
            places, at = np.arange(len(block)), slice(start, start + BLOCK)
            rows = mechanism.distances_of(block)
            rows[places, block] = np.inf  # not to the word itself
            self.nearest[at] = rows.min(axis=1)
            middle = (mechanism.size - 2) // 2
            self.middle[at] = np.partition(rows, middle, axis=1)[:, middle]
            self.least_of_all = np.minimum(self.least_of_all, rows.min(axis=0))
            rows[places, block] = 0
            self.farthest[at] = rows.max(axis=1)
            self.sum_of_all += rows.sum(axis=0)
