"""The MADLIB mechanism, also called MVC or multivariate Laplace. It adds noise to the word's
vector and returns the word nearest to the noisy vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.base import (
    EuclideanMechanism,
    Mechanism,
    Space,
    check_epsilon,
    register,
)


@register
class Madlib(EuclideanMechanism):
    """Replace w by the word nearest to φ(w) + z, where z has density proportional to exp(-ε|z|).

    Source: Feyisetan et al. (2020); CLMLDP Algorithm 3.

    Privacy: ε·d metric DP with d the Euclidean distance of the vectors. The densities of φ(w) + z
    and φ(w') + z differ at every point by a factor of at most exp(ε·d(w, w')), by the triangle
    inequality; the nearest word is computed from the noisy vector alone. In float64 this holds up
    to the rounding of continuous noise (Mironov 2012).

    Attributes:
        vectors: (V, p) vectors of the input and output words.
    """

    name = "madlib"
    exactness = (
        "continuous noise is drawn in float64: exact except for its rounding and for radii and "
        "directions that numbers of 53 bits do not reach, which have a probability below 1e-30"
    )

    @property
    def searched(self) -> int:  # type: ignore[override]
        """Number of coordinates that the search for one token's replacement reads."""
        return int(self.vectors.size)

    def remapped(self, space: Space, parameters: Mapping[str, Any]) -> Mechanism:
        """Return this mechanism followed by ``rank_remap``, a post-processing."""
        from lexveil.core.mechanisms.rank_remap import RankRemap

        return RankRemap(self, space.near(), **parameters)

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy loss ε·d; the class docstring gives the proof."""
        return epsilon * distance

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Draw n noise vectors with density proportional to exp(-ε|z|).

        The radius is Gamma(shape p, scale 1/ε), the direction uniform on the sphere.

        Args:
            epsilon: (n,) in 1 / embedding units.

        Returns:
            (n, p) float64.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        check_epsilon(epsilon)
        p = self.vectors.shape[1]
        radius = rng.gamma(p, 1.0, size=len(epsilon)) / epsilon
        direction = rng.standard_normal((len(epsilon), p))
        length = np.sqrt(np.einsum("np,np->n", direction, direction))
        noise: Floats = direction * (radius / length)[:, None]
        return noise

    def replace(self, ids: Ids, epsilon: Floats, noise: Floats) -> Ids:
        """Return the word nearest to each token's noisy vector."""
        return self.replace_queries(self.vectors, ids, epsilon, noise)

    def replace_queries(
        self,
        queries: Vectors,
        of: Ids,
        epsilon: Floats,  # noqa: ARG002
        noise: Floats,
    ) -> Ids:
        """Return the word nearest to each query vector after noise is added.

        Args:
            queries: (q, p) vectors, which need not be vectors of words.
            of: (n,) the query of each draw.
            epsilon, noise: the epsilon and the noise of each draw.
        """
        return self.search.nearest(queries[of] + noise)
