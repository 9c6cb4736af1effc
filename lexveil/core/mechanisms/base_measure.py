"""Base measures from public text: the likelihood of a word after the word written before it, in
whole numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Ids
from lexveil.core.embeddings.bigrams import Bigrams

Halvings = npt.NDArray[np.uint8]

MASS_BITS = 31  # bits of the total mass of all words, after any word
MOST_KAPPA = 2.0


class BaseMeasure(NamedTuple):
    """Base measure m(y | c) = single(y) + after(c, y), in whole numbers; without a word c before
    it, the first part alone.

    Attributes:
        single: (V,) int64, at least 1.
        starts: (R + 1,), the first entry of each of R tokens that may be written before in ``ids``
            and ``after``, and the end.
        ids: (E,) words, ascending after each token.
        after: (E,) int64, at least 0.
    """

    single: Ids
    starts: Ids
    ids: Ids
    after: Ids

    def of(self, before: int) -> Ids:
        """Return (V,) m(y | c) of every word after ``before``; -1 if no word is before it."""
        mass = self.single.copy()
        if before >= 0:
            row = slice(self.starts[before], self.starts[before + 1])
            mass[self.ids[row]] += self.after[row]
        return mass


def base_measure(counts: Ids, bigrams: Bigrams, kappa: float, halvings: Halvings) -> BaseMeasure:
    """Return the base measure 2^-h(y)·μ(y | c)^κ, rounded once to whole numbers, for each c up to a
    factor of its own.

    μ(y | c) = (1 - λ)·p(y) + λ·n(c, y)/n(c), p the frequency of y with one added to each count, λ =
    n(c)/(n(c) + t(c)) for t(c) different words after c (Witten and Bell 1991). Divided by (1 -
    λ)^κ, which cancels in the distribution of y, it is (p(y) + n(c, y)/t(c))^κ: every word has
    p(y)^κ whatever c is, and the words seen after c have more.

    Args:
        counts: (V,) count of each word.
        bigrams: counts of the words after each of R tokens, the words among them.
        kappa: exponent κ.
        halvings: (V,) h, the number of times that the measure of each word is halved.
    """
    p = (counts + 1.0) / (counts + 1.0).sum()
    different = np.diff(bigrams.starts)
    ratio = bigrams.counts / np.repeat(different, different)
    own = np.exp2(-halvings.astype(np.float64))
    single: Floats = own * p**kappa
    after: Floats = own[bigrams.ids] * ((p[bigrams.ids] + ratio) ** kappa - p[bigrams.ids] ** kappa)
    sums = np.concatenate([[0.0], np.cumsum(after)])[bigrams.starts]
    most = single.sum() + np.diff(sums).max(initial=0.0)
    # Rounding may add 1 to each of V words, and a half to each word after c.
    unit = (2.0**MASS_BITS - 2 * len(counts)) / (most * (1 + 1e-9))
    return BaseMeasure(
        np.maximum(np.rint(unit * single), 1).astype(np.int64),
        bigrams.starts,
        bigrams.ids,
        np.rint(unit * after).astype(np.int64),
    )
