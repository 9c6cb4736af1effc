"""The Vickrey mechanism: MADLIB's noise on the word vector, followed by a random choice among the
words nearest to the noisy vector, where MADLIB always takes the nearest.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from lexveil.base.errors import ParameterError
from lexveil.base.parameters import Section
from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.base import register
from lexveil.core.mechanisms.madlib import Madlib


class VickreyParameters(Section):
    """Parameters of the mechanism vickrey."""

    t: float | list[float] = Field(
        0.75,
        description="0 gives madlib, 1 always gives the second nearest word; for k above 2 a "
        "list of k numbers",
    )
    k: int = Field(2, ge=2, le=7, description="candidates")  # less than FEW of the exact search
    exclude_input: bool = Field(
        default=False,
        description="exclude the input word from the candidates, as the papers' code does; true "
        "voids the guarantee",
    )

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        several = self.t if isinstance(self.t, list) else [self.t]
        fits = len(several) == self.k or (self.k == 2 and len(several) == 1 and several[0] <= 1)
        if not fits or not all(number >= 0 for number in several):
            raise ValueError(
                f"vickrey.t is {self.t}; it must be one number from 0 to 1 if vickrey.k is 2, "
                f"or a list of {self.k} "
                "numbers that are not negative"
            )
        return self


@register
class Vickrey(Madlib):
    """Replace w by one of the k words nearest to φ̂ = φ(w) + z, z as in MADLIB.

    For k = 2 the result is the nearest word w₁ with probability (1-t)·δ₂ / (t·δ₁ + (1-t)·δ₂), else
    the second nearest word w₂; δ₁ and δ₂ are their distances to φ̂. t = 0 is MADLIB (the same words
    from the same generator), t = 1 always gives the second. For k > 2 the result is the r-th
    nearest word with probability proportional to exp(-t_r·δ_r), with one t for each of the k words.

    Source: Xu et al. (2021b), Algorithms 1 and 3.

    Privacy: ε·d metric DP, as MADLIB, because the choice depends only on the noisy vector and
    public words. The printed Algorithm 1 excludes the input from the candidates, and so uses the
    input again: Pr[M(w)=w] = 0 while Pr[M(w')=w] > 0, so no ε holds. ``exclude_input`` reproduces
    this for comparison with papers, and then there is no guarantee.

    Attributes:
        t: in [0, 1] for k = 2; k numbers, not negative, for k > 2.
        k: 2 to 7.
        exclude_input: exclude the input from the candidates.
    """

    name = "vickrey"

    Parameters: ClassVar[type[Section]] = VickreyParameters

    def __init__(self, vectors: Vectors, **parameters: Any) -> None:
        checked = self.checked(VickreyParameters, parameters)
        self.t = checked.t
        self.k = checked.k
        self.exclude_input = checked.exclude_input
        self.weights = np.atleast_1d(np.asarray(checked.t, dtype=np.float64))
        super().__init__(vectors)
        needed = self.k + self.exclude_input
        if len(self.vectors) < needed:
            raise ParameterError(
                f"vickrey needs {needed} words; the vocabulary holds {len(self.vectors)}"
            )
        self.no_guarantee = (
            "vickrey.exclude_input leaves the input out of the candidates, so a word is never "
            "replaced by itself, and no ε holds"
            if self.exclude_input
            else None
        )

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw MADLIB's noise vectors, and a column of uniform numbers to choose among the
        candidates: (n, p + 1).
        """
        ball = super().noise(epsilon, rng)
        return np.hstack([ball, rng.random((len(epsilon), 1))])

    def replace_queries(
        self,
        queries: Vectors,
        of: Ids,
        epsilon: Floats,  # noqa: ARG002
        noise: Floats,
    ) -> Ids:
        """Choose one of the words nearest to each query vector after noise is added."""
        near, distances = self.candidates(queries, of, noise[:, :-1])
        return self.choose(near, distances, noise[:, -1])

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d; the class docstring gives the proof."""
        return epsilon * distance

    def candidates(self, queries: Vectors, of: Ids, noise: Floats) -> tuple[Ids, Floats]:
        """Return the k words nearest to each noisy query vector, and their distances to it, (n, k)
        each.

        The input can be left out only if the queries are the vectors of the words.
        """
        near, distances = self.search.nearest_k(queries[of] + noise, self.k + self.exclude_input)
        if not self.exclude_input:
            return near, distances
        out = near == of[:, None]
        out[~out.any(axis=1), -1] = True
        return near[~out].reshape(-1, self.k), distances[~out].reshape(-1, self.k)

    def choose(self, near: Ids, distances: Floats, uniform: Floats) -> Ids:
        """Choose one candidate word per row from uniform numbers, by inverse CDF."""
        if len(self.weights) == 1:
            t = float(self.weights[0])
            first = distances[:, 0]
            second = distances[:, 1]
            # If both distances are 0, the words have the same vector, and t alone decides.
            tie = second == 0
            stay = np.where(tie, 1 - t, (1 - t) * second)
            whole = np.where(tie, 1.0, t * first + (1 - t) * second)
            # If φ̂ lies on w₁ and t = 1, the formula gives 0 / 0; its limit is the second word.
            stay = np.divide(stay, whole, out=np.zeros(len(stay)), where=whole > 0)
            return np.where(uniform < stay, near[:, 0], near[:, 1])
        score = -self.weights * distances
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        summed = np.cumsum(weight, axis=1)
        rank = (uniform[:, None] * summed[:, -1:] >= summed[:, :-1]).sum(axis=1)
        chosen: Ids = near[np.arange(len(near)), rank]
        return chosen
