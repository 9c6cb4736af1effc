"""The Mahalanobis mechanism: MADLIB with longer noise in the directions in which the embedding
spreads more.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from lexveil.base.parameters import Section
from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.base import product_distances, register
from lexveil.core.mechanisms.madlib import Madlib

ROWS_AT_A_TIME = 8192  # rows per block of the sum of products


class MahalanobisParameters(Section):
    """Parameters of the mechanism mahalanobis."""

    # At λ = 1 a direction in which the embedding has no spread would get no noise at all.
    lambda_: float = Field(
        0.2,
        alias="lambda",
        ge=0,
        lt=1,
        description="share of the covariance in the shape of the noise; 0 gives madlib",
    )


@register
class Mahalanobis(Madlib):
    """Replace w by the word nearest (Euclidean) to φ(w) + z, z = r·(λΣ + (1-λ)I)^{1/2}·u.

    r ~ Gamma(p, 1/ε), u uniform on the sphere, Σ the covariance of the embedding scaled to trace p.
    For λ = 0 the outputs equal MADLIB's, bit for bit, with the same generator.

    Source: Xu et al. (2020); CLMLDP Table 5 with λ = 0.2.

    Privacy: ε·d_RM metric DP, d_RM(w,w')² = (φ(w)-φ(w'))ᵀ (λΣ + (1-λ)I)^{-1} (φ(w)-φ(w')). The
    noise has density proportional to exp(-ε|A^{-1}z|) with A = (λΣ + (1-λ)I)^{1/2}, and |A^{-1}·|
    is the norm of d_RM. Σ is computed from the embedding, which is public. In float64 this holds up
    to the rounding of continuous noise, as for MADLIB.

    Attributes:
        lambda_: λ in [0, 1).
        root: (p, p) float64, A.
    """

    name = "mahalanobis"
    metric = (
        "regularized Mahalanobis distance of the embedding, "
        "sqrt((φ-φ')ᵀ(λΣ+(1-λ)I)^{-1}(φ-φ')), Σ its covariance "
        "scaled to trace p"
    )
    unit = "Mahalanobis distance"
    Parameters: ClassVar[type[Section]] = MahalanobisParameters

    def __init__(self, vectors: Vectors, **parameters: Any) -> None:
        self.lambda_ = lambda_ = self.checked(MahalanobisParameters, parameters).lambda_
        super().__init__(vectors)
        # the largest ratio of d_RM to the Euclidean distance, as Σ has no negative eigenvalue
        self.stretch = float(1 / np.sqrt(1 - lambda_))
        spread = lambda_ * scaled_covariance(self.vectors) + (1 - lambda_) * np.eye(
            self.vectors.shape[1]
        )
        values, axes = np.linalg.eigh(spread)
        self.root: Floats = (axes * np.sqrt(values)) @ axes.T
        self._inverse_root: Floats = (axes / np.sqrt(values)) @ axes.T
        self._whitened: Vectors | None = None

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d; the class docstring gives the proof."""
        return epsilon * distance

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw n noise vectors with density proportional to exp(-ε|A^{-1}z|), shape (n, p), from
        the same random numbers as MADLIB.
        """
        ball = super().noise(epsilon, rng)
        if self.lambda_ == 0:
            return ball
        from lexveil.core.mechanisms.kernels.mahalanobis import multiply

        shaped = np.zeros_like(ball)
        multiply(ball, self.root, shaped)
        return shaped

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the regularized Mahalanobis distance d_RM for n pairs of token ids, shape (n,)."""
        difference = self.vectors[first].astype(np.float64) - self.vectors[second]
        if self.lambda_:
            difference = difference @ self._inverse_root
        lengths: Floats = np.sqrt(np.einsum("np,np->n", difference, difference))
        return lengths

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate Mahalanobis distances, as in ``Mechanism``: Euclidean distances of
        the vectors multiplied by A^{-1}.
        """
        if self._whitened is None:
            self._whitened = self.vectors @ self._inverse_root.astype(np.float32)
        return product_distances(self._whitened[ids], self._whitened)


def scaled_covariance(vectors: Vectors) -> Floats:
    """Return the covariance matrix (p, p) of V vectors, scaled to trace p; the identity if all
    vectors are equal.
    """
    p = vectors.shape[1]
    mean = vectors.mean(axis=0, dtype=np.float64)
    summed = np.zeros((p, p))
    for start in range(0, len(vectors), ROWS_AT_A_TIME):
        centred = vectors[start : start + ROWS_AT_A_TIME] - mean
        summed += centred.T @ centred
    trace = float(np.trace(summed))
    return summed * (p / trace) if trace > 0 else np.eye(p)
