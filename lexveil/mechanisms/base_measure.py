"""Base measures of public text: how likely a word is after the one written before it, in whole
numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.embeddings.bigrams import Bigrams
from lexveil.types import Floats, Ids

Halvings = npt.NDArray[np.uint8]

MASS_BITS = 31  # of all words together, after any word
MOST_KAPPA = 2.0


class BaseMeasure(NamedTuple):
    """m(y | c) = single(y) + after(c, y), whole numbers; without a c the first part alone.

    Attributes:
        single: (V,) int64, at least 1.
        starts: (R + 1,), where the words after each of R tokens that may be written before begin,
            and the end.
        ids: (E,) words, ascending after each token.
        after: (E,) int64, at least 0.
    """

    single: Ids
    starts: Ids
    ids: Ids
    after: Ids

    def of(self, before: int) -> Ids:
        """(V,) m(y | c) of every word after ``before``; -1: after none."""
        mass = self.single.copy()
        if before >= 0:
            row = slice(self.starts[before], self.starts[before + 1])
            mass[self.ids[row]] += self.after[row]
        return mass


def base_measure(counts: Ids, bigrams: Bigrams, kappa: float, halvings: Halvings) -> BaseMeasure:
    """The base measure 2^-h(y)·μ(y | c)^κ, rounded once to whole numbers, each c up to a factor of
    its own.

    μ(y | c) = (1 - λ)·p(y) + λ·n(c, y)/n(c), p the frequency of y with one added to each count, λ =
    n(c)/(n(c) + t(c)) for t(c) different words after c (Witten and Bell 1991). Divided by (1 -
    λ)^κ, which cancels in the distribution of y, it is (p(y) + n(c, y)/t(c))^κ: all words have
    p(y)^κ whatever c is, and those that were seen after c some more.

    Args:
        counts: (V,) of each word.
        bigrams: what follows each of R tokens, the words among them.
        halvings: (V,) the measure of each word is halved so often.
    """
    p = (counts + 1.0) / (counts + 1.0).sum()
    different = np.diff(bigrams.starts)
    ratio = bigrams.counts / np.repeat(different, different)
    own = np.exp2(-halvings.astype(np.float64))
    single: Floats = own * p**kappa
    after: Floats = own[bigrams.ids] * ((p[bigrams.ids] + ratio) ** kappa - p[bigrams.ids] ** kappa)
    sums = np.concatenate([[0.0], np.cumsum(after)])[bigrams.starts]
    most = single.sum() + np.diff(sums).max(initial=0.0)
    # Each of V words may be rounded up by 1, and each word after c by a half.
    unit = (2.0**MASS_BITS - 2 * len(counts)) / (most * (1 + 1e-9))
    return BaseMeasure(
        np.maximum(np.rint(unit * single), 1).astype(np.int64),
        bigrams.starts,
        bigrams.ids,
        np.rint(unit * after).astype(np.int64),
    )
