"""The 1-Diffractor mechanism with two-sided geometric noise on a word's position in a list of
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from lexveil.base.types import Floats, Ids, Orders, Words
from lexveil.core.mechanisms.base import register
from lexveil.core.mechanisms.word_lists import OnLists, OnListsParameters, settle


@register
class DiffractorGeometric(OnLists):
    """Replace a word by adding two-sided geometric noise to its index in a word list, Pr[X=x] =
    (e^ε-1)/(e^ε+1)·e^{-ε|x|}, and clipping the sum to [0, W-1].

    Source: Meisenbacher et al. (2024), 1-Diffractor, 1-D_G. Without clipping Pr[X=0] = tanh(ε/2).

    Privacy: ε·|i-j| for one list, since e^{-ε|x|} changes by at most a factor e^ε per step;
    clipping is post-processing.

    Sampling is exact on integers: the inverse CDF gives the index at a uniform number with as many
    bits as needed, see ``settle``. No probability is rounded, however small.
    """

    name = "diffractor_geometric"
    exactness = "the new index is drawn exactly, on integers"

    def __init__(self, orders: Sequence[Orders] | Orders, **parameters: Any) -> None:
        self.checked(OnListsParameters, parameters)
        super().__init__(orders)

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d; the class docstring gives the proof."""
        return epsilon * distance

    def log_pmf_index(self, index: Ids, epsilon: Floats) -> Floats:
        """Return the log probability of each output index for n input indexes in one list, shape
        (n, W).
        """
        if self.size == 1:
            return np.zeros((len(index), 1))
        steps = np.abs(np.arange(self.size) - index[:, None])
        inside = np.log(-np.expm1(-epsilon)) - np.log1p(np.exp(-epsilon))
        log_weight: Floats = inside[:, None] - epsilon[:, None] * steps
        for end in (
            0,
            self.size - 1,
        ):  # clipping moves the mass beyond an end of the list to that end
            log_weight[:, end] = -epsilon * steps[:, end] - np.log1p(np.exp(-epsilon))
        return log_weight

    def perturb(self, index: Ids, epsilon: Floats, words: Words) -> Ids:
        """Add the geometric noise to each index, and clip the result to the list."""
        from lexveil.core.mechanisms.kernels.diffractor import geometric

        moved, doubt = geometric(index, epsilon, words, self.size)
        for token in np.flatnonzero(doubt):
            size = geometric_size(words[token], float(epsilon[token]), self.size)
            moved[token] = index[token] - size if int(words[token, 0]) & 1 else index[token] + size
        clipped: Ids = np.clip(moved, 0, self.size - 1, out=moved)
        return clipped


def geometric_size(words: Words, epsilon: float, limit: int) -> int:
    """Return |X|, the absolute value of two-sided geometric noise X, exactly; or ``limit`` if |X|
    is larger.

    The value is the largest m with U < Pr[|X| >= m] = 2·e^{-εm}/(1 + e^{-ε}), where U is the
    uniform number. The last bit of the first word is the sign and not part of U.
    """
    return settle(partial(_geometric_at, epsilon=epsilon, limit=limit), words, shift=1)


def _geometric_at(uniform: Decimal, epsilon: float, limit: int) -> int:
    """Return |X|, the absolute value of two-sided geometric noise X, at a uniform number in [0,
    1]; or ``limit`` if |X| is larger.
    """
    if uniform <= 0:
        return limit
    e = Decimal(epsilon)
    level = (Decimal(2).ln() - (1 + (-e).exp()).ln() - uniform.ln()) / e
    return int(min(max(level, Decimal(0)), Decimal(limit)))
