"""Base measures from public text: integer weights that are larger for a word that is likely after
the previously written word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Ids
from lexveil.core.embeddings.bigrams import Bigrams

Halvings = npt.NDArray[np.uint8]

MASS_BITS = 31  # bits of the total mass of all words after one word
MOST_KAPPA = 2.0


class BaseMeasure(NamedTuple):
    """Base measure m(y | c) = single(y) + after(c, y), in whole numbers, for a word y after a word
    c. If no word precedes y, it is single(y).

    Attributes:
        single: (V,) int64, at least 1.
        starts: (R + 1,) for each of R tokens c, the position of its first entry in ``ids`` and
            ``after``; the last value is the number of entries.
        ids: (E,) words y, ascending for each token c.
        after: (E,) int64, at least 0.
    """

    single: Ids
    starts: Ids
    ids: Ids
    after: Ids

    def of(self, before: int) -> Ids:
        """Return (V,) the base measure m(y | c) of every word y after the token c.

        Args:
            before: the row of c; -1 if no token precedes y.
        """
        mass = self.single.copy()
        if before >= 0:
            row = slice(self.starts[before], self.starts[before + 1])
            mass[self.ids[row]] += self.after[row]
        return mass


def base_measure(counts: Ids, bigrams: Bigrams, kappa: float, halvings: Halvings) -> BaseMeasure:
    """Return the base measure 2^-h(y)·μ(y | c)^κ, rounded to whole numbers, for each c up to a
    factor that depends on c only.

    μ(y | c) = (1 - λ)·p(y) + λ·n(c, y)/n(c). Here p is the frequency of y with one added to each
    count, and λ = n(c)/(n(c) + t(c)) with t(c) the number of different words after c (Witten and
    Bell 1991). Dividing μ^κ by (1 - λ)^κ, which cancels in the distribution of y, gives (p(y) +
    n(c, y)/t(c))^κ. So every word has at least p(y)^κ for all c, and the words seen after c have
    more.

    Args:
        counts: (V,) count of each word.
        bigrams: counts of the words after each of R tokens; the V words are among these tokens.
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
    # Rounding may add 1 to the mass of each of V words, and a half to that of each word after c.
    unit = (2.0**MASS_BITS - 2 * len(counts)) / (most * (1 + 1e-9))
    return BaseMeasure(
        np.maximum(np.rint(unit * single), 1).astype(np.int64),
        bigrams.starts,
        bigrams.ids,
        np.rint(unit * after).astype(np.int64),
    )
