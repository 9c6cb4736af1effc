"""Truncated Gumbel: among a random number of nearest words, the one whose noisy distance is smallest."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from lexveil.errors import ParameterError
from lexveil.mechanisms.base import EuclideanMechanism, register
from lexveil.mechanisms.preconditions import check_epsilon
from lexveil.parameters import Section
from lexveil.types import Floats, Ids, Vectors

FLAT = 1000.0  # largest scale of the noise, in units of its range 2Δmax
BLOCK = 2048  # words whose neighbours are found at a time


class TruncatedGumbelParameters(Section):
    """Parameters of truncated_gumbel."""

    calibration: Literal["theorem", "paper"] = Field(
        "theorem", description="refuses an epsilon that the paper's theorem does not cover; paper takes every one"
    )


@register
class TruncatedGumbel(EuclideanMechanism):
    """Among the k nearest words of w (itself included) take the one with the smallest distance plus Gumbel noise.

    k ~ Poisson(ln V) truncated to [1, V]. The noise is Gumbel of scale b truncated to [-Δmax, Δmax]:
    b = 2Δmax / min(W₀(2aΔmax), ln(aΔmin)), a = (ε - 2(1+ln V)/Δmin)/3, W₀ Lambert's function, Δmin and Δmax the
    smallest and largest distance between two different words of the whole vocabulary.

    Source: Xu et al. (2021a).

    Privacy: none that we can state. The paper claims ε·d with d the Euclidean distance where aΔmin > 1. The number of
    neighbours alone breaks it, whatever the noise: Pr[w'|w'] >= Pr[k=1], but Pr[w'|w] <= Pr[k > number of words nearer
    to w], and that tail falls faster than exp(-ε·d) allows (tests/auditing shows it on real words). With
    ``calibration="theorem"`` an ε that the theorem does not cover is refused, with ``"paper"`` every one is taken, as
    in the paper's experiments.
    Neighbours and Δ are exact. In float64: k is drawn from 53 bits, so a k of smaller probability than that never
    comes; the noise has the usual rounding of continuous noise.

    Attributes:
        smallest, largest: Δmin and Δmax, embedding units.
        no_guarantee: why there is none.
    """

    name: ClassVar[str] = "truncated_gumbel"
    Parameters: ClassVar[type[Section]] = TruncatedGumbelParameters

    no_guarantee = "truncated_gumbel: the published bound does not hold, the number of neighbours alone breaks it"

    def __init__(self, vectors: Vectors, **parameters: Any) -> None:
        from scipy.stats import poisson

        from lexveil.embeddings.extent import largest_distance, smallest_distance

        self.calibration = self.checked(TruncatedGumbelParameters, parameters).calibration
        super().__init__(vectors)
        n = self.size
        if n < 2:
            raise ParameterError("truncated_gumbel needs at least two words")
        self.smallest = smallest_distance(self.vectors)
        if self.smallest == 0:
            raise ParameterError(
                f"truncated_gumbel: among {n:,} words are two with the same vector, so Δmin is 0 and no epsilon is "
                "large enough; retrain with a larger embeddings.min_count, or take another mechanism"
            )
        self.largest = largest_distance(self.vectors)
        mean = np.log(n)
        low, high = poisson.cdf([0, n], mean)
        # Pr[k <= 1], Pr[k <= 2], … up to the last step that a number of 53 bits can tell from 1.
        steps = (poisson.cdf(np.arange(1, n + 1), mean) - low) / (high - low)
        self.k_cdf: Floats = steps[: int(np.searchsorted(steps, 1 - 2.0**-53)) + 1]
        self.k_most = len(self.k_cdf)
        self.members = np.empty((n, self.k_most), dtype=np.int32)
        self.distances = np.empty((n, self.k_most))
        self.listed = np.zeros(n, dtype=np.bool_)

    @property
    def smallest_epsilon(self) -> float:
        """The ε above which the theorem has a calibration: aΔmin = 1."""
        return float((3 + 2 * (1 + np.log(len(self.vectors)))) / self.smallest)

    def scale(self, epsilon: Floats) -> Floats:
        """The scale b of the noise for each of n epsilons, embedding units.

        Raises:
            ParameterError: if the calibration does not exist at one of them; names the smallest epsilon that works.
        """
        from scipy.special import lambertw

        check_epsilon(epsilon)
        a = (epsilon - 2 * (1 + np.log(len(self.vectors))) / self.smallest) / 3
        uncovered = ~(a * self.smallest > 1)
        if self.calibration == "theorem" and uncovered.any():
            raise ParameterError(
                f"truncated_gumbel: the theorem has no noise for an epsilon of {epsilon.min():.6g} per token; here "
                f"(V = {len(self.vectors):,}, Δmin = {self.smallest:.4g}, Δmax = {self.largest:.4g}) it needs more "
                f"than {self.smallest_epsilon:.6g}. Raise epsilon, or set mechanisms.truncated_gumbel.calibration: "
                "paper, which takes every epsilon"
            )
        # Where the paper's formula has no value: noise all but flat over its whole range.
        b = np.full(len(epsilon), FLAT * 2 * self.largest)
        a = a[~uncovered]
        divisor = np.minimum(lambertw(2 * a * self.largest).real, np.log(a * self.smallest))
        b[~uncovered] = np.minimum(2 * self.largest / divisor, FLAT * 2 * self.largest)
        return b

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw (n, 1 + k_most) uniform numbers: one for k, one for the noise of each neighbour.

        Raises:
            ParameterError: as ``scale``.
        """
        self.scale(epsilon)
        return rng.random((len(epsilon), 1 + self.k_most))

    def replace(self, ids: Ids, epsilon: Floats, noise: Floats) -> Ids:
        """Turn the uniform numbers into k and noise by inverse CDF, and take the smallest noisy distance."""
        self._list(ids)
        b, out = self.scale(epsilon)[:, None], np.empty(len(ids), dtype=np.int64)
        for start in range(0, len(ids), BLOCK):
            rows = slice(start, start + BLOCK)
            # The last step is 1 up to rounding, and no uniform number is.
            k = np.minimum(np.searchsorted(self.k_cdf, noise[rows, 0], side="right"), self.k_most - 1) + 1
            score = self.distances[ids[rows]] + self.noise_of(noise[rows, 1:], b[rows])
            score[np.arange(self.k_most) >= k[:, None]] = np.inf
            out[rows] = self.members[ids[rows], score.argmin(axis=1)]
        return out

    def noise_of(self, uniform: Floats, b: Floats) -> Floats:
        """Gumbel noise of scale b truncated to [-Δmax, Δmax], by inverse CDF."""
        # F(x) = exp(-exp(-x/b)). The weight above the truncation may be all but 0, hence differences of exponents.
        low, high = -np.exp(self.largest / b), -np.exp(-self.largest / b)
        log_f = np.log(uniform + (1 - uniform) * np.exp(low - high)) + high
        noise: Floats = np.clip(-b * np.log(-log_f), -self.largest, self.largest)
        return noise

    def _list(self, ids: Ids) -> None:
        new = np.unique(ids)
        new = new[~self.listed[new]]
        for start in range(0, len(new), BLOCK):
            words = new[start : start + BLOCK]
            self.members[words], self.distances[words] = self.search.nearest_k(
                self.vectors[words].astype(np.float64), self.k_most
            )
            self.listed[words] = True
