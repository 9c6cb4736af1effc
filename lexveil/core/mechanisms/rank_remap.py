"""Rank remapping: post-processing that replaces an output word by one of its nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from lexveil.base.parameters import Section, validated
from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.base import EuclideanMechanism, Mechanism

if TYPE_CHECKING:
    from lexveil.core.embeddings.neighborhoods import NearTable, Neighborhoods


class RankRemapParameters(Section):
    """Parameters of rank_remap, a post-processing for the mechanisms that add noise to a vector to
    choose their output: madlib, mahalanobis, vickrey.
    """

    enabled: bool = Field(default=False, description="move each output to one of its neighbours")
    c: float = Field(
        0.5, ge=1e-6, le=1e6, description="the i-th neighbour has probability ∝ exp(-c·epsilon·i)"
    )
    ranks: int = Field(
        32,
        ge=1,
        le=64,
        description="number of neighbours among which a new output is chosen, including the "
        "output itself",
    )


class RankRemap(Mechanism):
    """Replace the output ŵ of another mechanism by its i-th neighbour, i = 0 … R-1, with
    probability ∝ exp(-c·ε·i).

    In many dimensions multivariate Laplace noise returns the word itself or a distant one, hardly
    ever a neighbour. Remapping spreads the output over the words around ŵ; i = 0 is ŵ.

    Source: arXiv 2411.13784.

    Privacy: the guarantee of the inner mechanism holds unchanged, because remapping uses only its
    output, public vectors and the public ε: post-processing.

    Attributes:
        inner: the mechanism whose output is remapped: madlib, mahalanobis or vickrey.
        c: greater than 0; larger values prefer nearer neighbours.
        ranks: R, at most V.
        near: lists of near words.
    """

    near: Neighborhoods
    post_processing = (
        "each output is moved to one of its near words, by rank; the input is not used again"
    )

    def __init__(
        self, inner: EuclideanMechanism, near: NearTable | None = None, **parameters: Any
    ) -> None:
        from lexveil.core.embeddings.neighborhoods import Neighborhoods

        checked = validated(RankRemapParameters, parameters, named=lambda key: f"rank_remap.{key}")
        self.inner = inner
        self.c = checked.c
        self.name = inner.name
        self.metric = inner.metric
        self.guarantee = inner.guarantee
        self.no_guarantee = inner.no_guarantee
        self.size = inner.size
        self.exactness = inner.exactness
        self.delta = inner.delta
        self.vectors = inner.vectors
        self.search = inner.search
        self.searched = inner.searched
        self.ranks = min(checked.ranks, self.size)
        self.near = Neighborhoods(self.vectors, near)

    @property
    def is_proven(self) -> bool:
        """Whether the guarantee of the inner mechanism is proven."""
        return self.inner.is_proven

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the distance of the inner mechanism for n pairs of token ids, shape (n,)."""
        return self.inner.distance(first, second)

    def distances_of(self, ids: Ids) -> Floats:
        """Return the inner mechanism's approximate distances from n words to all words."""
        return self.inner.distances_of(ids)

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the inner mechanism's privacy loss, which post-processing does not change."""
        return self.inner.privacy_loss(epsilon, distance)

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw the inner mechanism's noise, and one column of uniform numbers for the ranks."""
        inner = self.inner.noise(epsilon, rng)
        return np.hstack([inner, rng.random((len(epsilon), 1))])

    def replace(self, ids: Ids, epsilon: Floats, noise: Floats) -> Ids:
        """Run the inner mechanism, then replace each output word by one of its neighbours."""
        near = self.inner.replace(ids, epsilon, noise[:, :-1])
        ranks = self.rank(epsilon, noise[:, -1])
        moved = np.empty(len(near), dtype=np.int64)
        for chosen, table, rows in self.near.tables(near):
            moved[chosen] = table.ids[rows, ranks[chosen]]
        return moved

    def needs_lists(self, epsilon: float) -> bool:  # noqa: ARG002
        """Return True: this mechanism needs the lists of nearest words at every epsilon."""
        return True

    def rank(self, epsilon: Floats, uniform: Floats) -> Ids:
        """Compute the neighbour rank i of each of n tokens from uniform numbers, by inverse CDF.
        The rank has a geometric distribution, truncated at R-1.
        """
        rate = self.c * epsilon
        level = -np.log1p(uniform * np.expm1(-rate * self.ranks)) / rate
        ranks: Ids = np.minimum(level, self.ranks - 1).astype(np.int64)
        return ranks
