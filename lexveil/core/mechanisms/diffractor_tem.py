"""The 1-Diffractor mechanism with the truncated exponential mechanism (TEM) on a word's position
in a list of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from lexveil.base.parameters import Section
from lexveil.base.types import Floats, Ids, Orders, Words
from lexveil.core.mechanisms.base import register
from lexveil.core.mechanisms.truncated_exponential import truncation
from lexveil.core.mechanisms.word_lists import OnLists, OnListsParameters, settle


class DiffractorTemParameters(OnListsParameters):
    """Parameters of the mechanism diffractor_tem."""

    beta: float = Field(0.001, ge=1e-12, lt=1, description="as of tem")


@register
class DiffractorTem(OnLists):
    """Replace a word's index i in a word list by j with probability proportional to
    exp(-ε·min(|i-j|, γ)/2), a truncated exponential mechanism.

    γ = (2/ε)·ln((1-β)(W-1)/β), not rounded. Source: Meisenbacher et al. (2024), 1-D_T; Carvalho et
    al. (2023).

    Privacy: ε·|i-j| for one list, as TEM with d = |i-j|.

    The weights form geometric series, so the inverse CDF takes a fixed number of operations. It is
    exact on integers, with as many bits of the uniform number as needed, see ``settle``. γ is
    rounded in the direction in which the bound holds.

    Attributes:
        beta: in (0, 1); the probability of an index farther than γ is at most this.
    """

    name = "diffractor_tem"
    exactness = "the new index is drawn exactly, on integers"
    Parameters: ClassVar[type[Section]] = DiffractorTemParameters

    def __init__(self, orders: Sequence[Orders] | Orders, **parameters: Any) -> None:
        self.beta = self.checked(DiffractorTemParameters, parameters).beta
        super().__init__(orders)

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d; the class docstring gives the proof."""
        return epsilon * distance

    def decay(self, epsilon: Floats) -> tuple[Floats, float]:
        """Return how the log weight of an index falls with its distance: by ε/2 for each position,
        and by ε·γ/2 at most.
        """
        return epsilon / 2, float(truncation(np.array([2.0]), self.beta, self.size)[0])

    def log_pmf_index(self, index: Ids, epsilon: Floats) -> Floats:
        """Return the log probability of each output index for n input indexes in one list, shape
        (n, W).
        """
        steps = np.abs(np.arange(self.size) - index[:, None])
        gamma = truncation(epsilon, self.beta, self.size)
        log_weight: Floats = -epsilon[:, None] / 2 * np.minimum(steps, gamma[:, None])
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def reach(self, epsilon: Floats) -> Floats:
        """Return the radius within which the weight of an index depends on its distance: γ plus a
        margin that is larger than the rounding error of γ.

        With a smaller radius, the score could change by more than 1 between the last index inside
        the radius and the next one.
        """
        reach: Floats = truncation(epsilon, self.beta, self.size) + np.minimum(
            0.5, 2.0**-40 / epsilon
        )
        return reach

    def perturb(self, index: Ids, epsilon: Floats, words: Words) -> Ids:
        """Draw a new index for each of n indexes."""
        from lexveil.core.mechanisms.kernels.diffractor import truncated_exponential

        gamma = self.reach(epsilon)
        far = min(1.0, self.beta / ((1 - self.beta) * max(self.size - 1, 1)))
        moved, doubt = truncated_exponential(index, epsilon, gamma, far, self.size, words)
        for token in np.flatnonzero(doubt):
            radius = int(min(gamma[token], float(self.size)))
            at = int(index[token])
            e = float(epsilon[token])
            moved[token] = settle(
                partial(self._at, index=at, epsilon=e, radius=radius), words[token]
            )
        new: Ids = moved
        return new

    def _at(self, uniform: Decimal, index: int, epsilon: float, radius: int) -> int:
        """Return the new index of a word at a uniform number in [0, 1]. The compiled kernel uses
        the same order of indexes.
        """
        left = min(index, radius)
        right = min(self.size - 1 - index, radius)
        half = Decimal(epsilon) / 2
        beta = Decimal(self.beta)
        q = (-half).exp()
        far = min(Decimal(1), beta / ((1 - beta) * max(self.size - 1, 1)))
        ratio = q / (1 - q)
        sums = [(1 - (-half * n).exp()) * ratio for n in (right, left)]
        outside = self.size - 1 - left - right
        place = uniform * (1 + sum(sums) + outside * far)
        if place < 1:
            return index
        place -= 1
        for sign, n, total in ((1, right, sums[0]), (-1, left, sums[1])):
            if place < total:
                level = int(-(1 - place / ratio).ln() / half)
                return index + sign * (1 + min(max(level, 0), n - 1))
            place -= total
        if not outside:
            # the upper end of the last interval
            return index - left if left else index + right
        step = min(int(place / far), outside - 1)
        return int(step if step < index - left else step + left + right + 1)
