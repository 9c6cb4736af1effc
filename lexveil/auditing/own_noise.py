"""Reference implementation, for audits, of mechanisms that add noise to the vector of a text unit
and output a sentence near the noisy vector. It uses other random numbers for the noise, and
computes distances from differences in float64.

The output distribution has no closed form, so outputs of the mechanism are compared with outputs
that the audit draws itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lexveil.auditing.distributions import spread
from lexveil.base.types import Flags, Floats, Ids, Noise, Vectors
from lexveil.core.mechanisms.noise.streams import stream

OWN_DRAWS = 4_000  # the audit's own draws for a unit at an epsilon
POINTS_AT_ONCE = 250
CLOSE_CHOICE = 1e-7  # distances and probabilities computed in another order may differ by this much


@dataclass(frozen=True)
class OwnNoise:
    """Output distribution of a mechanism over the sentences of a sentence bank, estimated from
    draws that the audit makes itself.

    Attributes:
        vectors: (N, p) float64, the vectors of the sentences.
        parameters: the parameters of the mechanism, in the form of its privacy record.
    """

    vectors: Floats
    parameters: Mapping[str, Any]
    seed: int

    @cached_property
    def _root(self) -> Floats | None:
        """A matrix root of λΣ + (1-λ)I, which shapes the noise; its value is None for noise with
        the same distribution in all directions.
        """
        share = self.parameters.get("lambda", 0.0)
        return np.asarray(np.linalg.cholesky(spread(self.vectors, share))) if share else None

    @property
    def stretch(self) -> float:
        """The largest ratio of the claimed metric to the Euclidean distance."""
        return float((1 - self.parameters.get("lambda", 0.0)) ** -0.5)

    @cached_property
    def _noise(self) -> tuple[Floats, Floats]:
        """Draw noise vectors at ε = 1, and uniform numbers that choose among candidate
        sentences.
        """
        rng = stream(self.seed, "audit", "own noise")
        p = self.vectors.shape[1]
        radius = np.zeros(OWN_DRAWS)
        for _ in range(p):  # a gamma variable of shape p is a sum of p exponential variables
            radius -= np.log(1 - rng.random(OWN_DRAWS))
        direction = rng.standard_normal((OWN_DRAWS, p))
        ball = direction * (radius / np.linalg.norm(direction, axis=1))[:, None]
        shaped = ball if self._root is None else ball @ self._root.T
        return shaped, rng.random(OWN_DRAWS)

    def in_a_ball(self, noise: Noise) -> Floats:
        """Map noise linearly, so that its claimed density becomes ∝ exp(-ε|z|)."""
        ball = noise[:, : self.vectors.shape[1]]
        return ball if self._root is None else np.asarray(np.linalg.solve(self._root, ball.T).T)

    def counts(self, query: Vectors, epsilon: float) -> Floats:
        """Return (N,) how often each sentence is the output for a unit, given by its vector, in
        draws that the audit makes itself.
        """
        noise, uniform = self._noise
        drawn = self.chosen(query.astype(np.float64) + noise / epsilon, uniform)[0]
        return np.bincount(drawn, minlength=len(self.vectors)).astype(np.float64)

    def chosen(self, points: Noise, uniform: Noise) -> tuple[Ids, Flags]:
        """Return the output sentence for each noisy vector, and whether rounding errors could
        change it.
        """
        k = int(self.parameters.get("k", 1))
        near, distances = self._nearest(points, k + 1)
        is_close = np.asarray((np.diff(distances, axis=1) < CLOSE_CHOICE).any(axis=1))
        ends = np.cumsum(self._chances(distances[:, :k]), axis=1)
        is_close |= (np.abs(ends - uniform[:, None]) < CLOSE_CHOICE).any(axis=1)
        rank = (uniform[:, None] >= ends[:, :-1]).sum(axis=1)
        return near[np.arange(len(near)), rank], is_close

    def _chances(self, distances: Floats) -> Floats:
        """Return (n, k) probabilities of the k candidate sentences of each noisy vector, nearest
        candidate first.
        """
        if "t" not in self.parameters:
            return np.ones((len(distances), 1))
        t = np.atleast_1d(np.asarray(self.parameters["t"], dtype=np.float64))
        if len(t) == 1:
            weights = np.stack([(1 - t[0]) * distances[:, 1], t[0] * distances[:, 0]], axis=1)
        else:
            weights = np.exp(-t * distances)
        chances: Floats = weights / weights.sum(axis=1, keepdims=True)
        return chances

    def _nearest(self, points: Floats, k: int) -> tuple[Ids, Floats]:
        ids = np.empty((len(points), k), dtype=np.int64)
        found = np.empty((len(points), k))
        lengths = (self.vectors**2).sum(axis=1)
        for start in range(0, len(points), POINTS_AT_ONCE):
            some = points[start : start + POINTS_AT_ONCE]
            scores = lengths - 2 * (some @ self.vectors.T)
            likely = np.argpartition(scores, k, axis=1)[:, : k + 1]
            apart = np.linalg.norm(self.vectors[likely] - some[:, None], axis=2)
            order = np.argsort(apart, axis=1, kind="stable")[:, :k]
            ids[start : start + len(some)] = np.take_along_axis(likely, order, axis=1)
            found[start : start + len(some)] = np.take_along_axis(apart, order, axis=1)
        return ids, found
