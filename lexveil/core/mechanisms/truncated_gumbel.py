"""The truncated Gumbel mechanism: it takes a random number of nearest words, and returns the one
with the smallest noisy distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from lexveil.base.errors import ParameterError
from lexveil.base.parameters import Section
from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.base import EuclideanMechanism, Space, check_epsilon, register

if TYPE_CHECKING:
    from lexveil.core.embeddings.neighborhoods import NearTable, Neighborhoods

FLAT = 1000.0  # largest scale of the noise, in units of its range 2Δmax
TOKENS_AT_A_TIME = 2048  # tokens per block


class TruncatedGumbelParameters(Section):
    """Parameters of the mechanism truncated_gumbel."""

    calibration: Literal["theorem", "paper"] = Field(
        "theorem",
        description="`theorem` refuses an epsilon that the paper's theorem does not cover; "
        "`paper` accepts every epsilon",
    )


@register
class TruncatedGumbel(EuclideanMechanism):
    """Replace w by that one of its k nearest words (w included) for which distance plus Gumbel
    noise is smallest.

    k ~ Poisson(ln V) truncated to [1, V]. The noise is Gumbel of scale b truncated to [-Δmax,
    Δmax]: b = 2Δmax / min(W₀(2aΔmax), ln(aΔmin)), a = (ε - 2(1+ln V)/Δmin)/3, W₀ Lambert's
    function, Δmin and Δmax the smallest and largest distance between two different words of the
    whole vocabulary.

    Source: Xu et al. (2021a).

    Privacy: no guarantee is proven. The paper claims ε·d with d the Euclidean distance if aΔmin >
    1. The number of neighbours alone violates the claim, whatever the noise: Pr[w'|w'] >= Pr[k=1],
    but Pr[w'|w] <= Pr[k > number of words nearer to w], and that tail falls faster than exp(-ε·d)
    allows (tests/auditing shows it on real words). ``calibration="theorem"`` refuses an ε that the
    theorem does not cover; ``"paper"`` takes every ε, as in the paper's experiments. Neighbours and
    Δ are exact. In float64, k is drawn from 53 bits, so a k of smaller probability never occurs;
    the noise has the usual rounding of continuous noise.

    Attributes:
        smallest, largest: Δmin and Δmax, embedding units.
        near: the lists of near words.
        no_guarantee: why there is no guarantee.
    """

    name = "truncated_gumbel"
    near: Neighborhoods
    Parameters: ClassVar[type[Section]] = TruncatedGumbelParameters

    no_guarantee = (
        "truncated_gumbel: the published bound does not hold, because the number of neighbours "
        "alone violates it"
    )

    def __init__(self, vectors: Vectors, near: NearTable | None = None, **parameters: Any) -> None:
        from scipy.stats import poisson

        from lexveil.core.embeddings.extent import largest_distance, smallest_distance
        from lexveil.core.embeddings.neighborhoods import Neighborhoods

        self.calibration = self.checked(TruncatedGumbelParameters, parameters).calibration
        super().__init__(vectors)
        n = self.size
        if n < 2:
            raise ParameterError("truncated_gumbel needs at least two words")
        self.near = Neighborhoods(self.vectors, near)
        table = self.near.table
        self.smallest = smallest_distance(
            self.vectors, table.ids[:, 1] if len(table) == n else None
        )
        if self.smallest == 0:
            raise ParameterError(
                f"truncated_gumbel: among {n:,} words are two with the same vector, so Δmin "
                "is 0 and no epsilon is "
                "large enough; retrain with a larger embeddings.min_count, or take another "
                "mechanism"
            )
        self.largest = largest_distance(self.vectors) if table.largest is None else table.largest
        mean = np.log(n)
        low, high = poisson.cdf([0, n], mean)
        # Pr[k <= 1], Pr[k <= 2], … up to the last step that a number of 53 bits can distinguish
        # from 1.
        steps = (poisson.cdf(np.arange(1, n + 1), mean) - low) / (high - low)
        self.k_cdf: Floats = steps[: int(np.searchsorted(steps, 1 - 2.0**-53)) + 1][
            : self.near.size
        ]
        self.k_most = len(self.k_cdf)

    @classmethod
    def build(cls, space: Space, parameters: Mapping[str, Any]) -> Self:
        """Build the mechanism over the words of a space, with their lists of nearest words."""
        return cls(space.vectors(), space.near(), **parameters)

    @property
    def smallest_epsilon(self) -> float:
        """The ε above which the theorem gives a noise scale, determined by aΔmin = 1."""
        return float((3 + 2 * (1 + np.log(len(self.vectors)))) / self.smallest)

    def scale(self, epsilon: Floats) -> Floats:
        """Return the scale b of the Gumbel noise for each of n epsilons, in embedding units.

        Raises:
            ParameterError: if the theorem gives no scale for an epsilon; the message names the
                smallest epsilon that has one.
        """
        from scipy.special import lambertw

        check_epsilon(epsilon)
        a = (epsilon - 2 * (1 + np.log(len(self.vectors))) / self.smallest) / 3
        uncovered = ~(a * self.smallest > 1)
        if self.calibration == "theorem" and uncovered.any():
            raise ParameterError(
                "truncated_gumbel: the paper's theorem covers an epsilon of more than "
                f"{self.smallest_epsilon:.6g} per token (V = {len(self.vectors):,}, Δmin = "
                f"{self.smallest:.4g}, Δmax = {self.largest:.4g}). The epsilon here is "
                f"{epsilon.min():.6g}. Give a larger epsilon, or set "
                "mechanisms.truncated_gumbel.calibration: paper, which accepts every epsilon"
            )
        # Where the paper's formula has no value, the noise is nearly uniform over its whole range.
        b = np.full(len(epsilon), FLAT * 2 * self.largest)
        a = a[~uncovered]
        divisor = np.minimum(lambertw(2 * a * self.largest).real, np.log(a * self.smallest))
        b[~uncovered] = np.minimum(2 * self.largest / divisor, FLAT * 2 * self.largest)
        return b

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw (n, 1 + k_most) uniform numbers: for each token one for k, the number of
        neighbours, and one for the noise of each neighbour.

        Raises:
            ParameterError: as in ``scale``.
        """
        self.scale(epsilon)
        return rng.random((len(epsilon), 1 + self.k_most))

    def replace(self, ids: Ids, epsilon: Floats, noise: Floats) -> Ids:
        """Convert the uniform numbers to k and Gumbel noise by inverse CDF, and return the word
        with the smallest noisy distance.
        """
        b = self.scale(epsilon)[:, None]
        out = np.empty(len(ids), dtype=np.int64)
        for start in range(0, len(ids), TOKENS_AT_A_TIME):
            rows = slice(start, start + TOKENS_AT_A_TIME)
            # The last step is 1 up to rounding, and every uniform number is below 1.
            k = (
                np.minimum(
                    np.searchsorted(self.k_cdf, noise[rows, 0], side="right"), self.k_most - 1
                )
                + 1
            )
            # Scores of the k neighbours only, token by token and nearest first.
            token = np.repeat(np.arange(len(k)), k)
            first = np.cumsum(k) - k
            rank = np.arange(len(token)) - first[token]
            lists = self.near.lists(ids[rows])
            score = lists.distances[token, rank] + self.noise_of(
                noise[rows][token, 1 + rank], b[rows][token, 0]
            )
            least = np.minimum.reduceat(score, first)
            at = np.flatnonzero(score == least[token])
            at = at[np.unique(token[at], return_index=True)[1]]  # the nearest wins ties
            out[rows] = lists.ids[np.arange(len(k)), rank[at]]
        return out

    def needs_lists(self, epsilon: float) -> bool:  # noqa: ARG002
        """Return True: this mechanism needs the lists of nearest words at every epsilon."""
        return True

    def noise_of(self, uniform: Floats, b: Floats) -> Floats:
        """Return Gumbel noise of scale b truncated to [-Δmax, Δmax], by inverse CDF."""
        # F(x) = exp(-exp(-x/b)). The weight above the truncation may be all but 0, hence
        # differences of exponents.
        low = -np.exp(self.largest / b)
        high = -np.exp(-self.largest / b)
        log_f = np.log(uniform + (1 - uniform) * np.exp(low - high)) + high
        noise: Floats = np.clip(-b * np.log(-log_f), -self.largest, self.largest)
        return noise
