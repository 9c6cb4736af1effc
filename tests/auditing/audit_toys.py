"""Reference mechanisms for the audit: channels written down entry by entry, correct ones and known-broken ones.

Each channel is a function of the (V, V) distances and ε that returns (V, V) natural logarithms of Pr[M(w) = y]. They
are slow and plain on purpose; the mechanisms in use are audited beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln

from lexveil.auditing.distributions import Distances, euclidean, mahalanobis, on_lists
from lexveil.auditing.exact import ExactResult, exact_audit
from lexveil.auditing.sampled import SampledResult, sampled_audit
from lexveil.mechanisms.noise.streams import stream
from lexveil.types import Floats

Channel = Callable[[Floats, float], Floats]


def line(*gaps: float) -> Floats:
    """Distances of words on a line with these gaps."""
    places = np.cumsum([0.0, *gaps])
    return np.abs(places[:, None] - places[None])


def cloud(n: int, dimensions: int, seed: int, scale: float = 1.0) -> Floats:
    places = np.random.default_rng(seed).standard_normal((n, dimensions)) * scale
    return np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))


def normalised(score: Floats) -> Floats:
    return score - np.logaddexp.reduce(score, axis=1, keepdims=True)


# --- TEM (Carvalho et al. 2023) -------------------------------------------------------------------


def tem_gamma(n: int, epsilon: float, beta: float = 0.001) -> float:
    return 2 / epsilon * np.log((1 - beta) * (n - 1) / beta)


def tem(distances: Floats, epsilon: float, beta: float = 0.001) -> Floats:
    """Pr ∝ exp(-ε·min(d, γ)/2)."""
    return normalised(-epsilon / 2 * np.minimum(distances, tem_gamma(len(distances), epsilon, beta)))


def tem_ball_missing(distances: Floats, epsilon: float, beta: float = 0.001) -> Floats:
    """An approximate index misses the nearest neighbour of every third word; what it misses is scored -γ."""
    score = np.minimum(distances, tem_gamma(len(distances), epsilon, beta))
    for w in range(0, len(distances), 3):
        near = np.argsort(distances[w], kind="stable")[1]
        score[w, near] = score.max()
    return normalised(-epsilon / 2 * score)


# --- 1-D lists ------------------------------------------------------------------------------------


def geometric(distances: Floats, epsilon: float) -> Floats:
    """Two-sided geometric noise on list positions, clipped to the list; ``distances`` only says how long it is."""
    n = len(distances)
    at = np.arange(n)
    law = np.log(np.tanh(epsilon / 2)) - epsilon * np.abs(at[:, None] - at[None])
    tail = -np.log1p(np.exp(-epsilon))  # ln of Σ_{x >= k} = e^{-εk}/(1 + e^{-ε})
    law[:, 0] = tail - epsilon * at
    law[:, -1] = tail - epsilon * (n - 1 - at)
    return law


# --- truncated Gumbel (Xu et al. 2021a) -----------------------------------------------------------


def poisson_sizes(n: int) -> Floats:
    """ln Pr[k] of k ~ Poisson(ln n) truncated to 1..n."""
    k = np.arange(1, n + 1)
    log_p = k * np.log(np.log(n)) - gammaln(k + 1)
    return np.asarray(log_p - np.logaddexp.reduce(log_p))


def star(n: int) -> Floats:
    """Words 0, 1, 2 at 0, 1, 2 on one axis; n - 3 more at 1.9 on axes of their own.

    From word 0 all of those are nearer than word 2; from word 1 all are farther.
    """
    places = np.zeros((n, n - 2))
    places[1, 0], places[2, 0] = 1.0, 2.0
    places[3:, 1:] = 1.9 * np.eye(n - 3)
    return np.asarray(np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)))


# --- as mechanisms --------------------------------------------------------------------------------


class HalfNoise:
    """Any mechanism, run at twice the ε that is claimed."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def noise(self, epsilon: Any, rng: np.random.Generator) -> Any:
        return self.inner.noise(2 * epsilon, rng)

    def replace(self, ids: Any, epsilon: Any, noise: Any) -> Any:
        return self.inner.replace(ids, 2 * epsilon, noise)


# --- their metric, and draws of them --------------------------------------------------------------


def distances_of(mechanism: Any) -> Distances:
    """The metric of a mechanism's claim, measured by the audit's own means."""
    if hasattr(mechanism, "orders"):
        return on_lists(mechanism.orders)
    if hasattr(mechanism, "lambda_"):
        return mahalanobis(mechanism.vectors, mechanism.lambda_)
    return euclidean(mechanism.vectors if hasattr(mechanism, "vectors") else mechanism.inner.vectors)


# --- audits of them -------------------------------------------------------------------------------

SAMPLES = 8_000
FALSE_ALARM = 1e-6  # of each sampled audit in this suite: the chance that it flags a mechanism that keeps its claim


def exact(distances: Floats, channel: Channel, epsilon: float) -> ExactResult:
    table = channel(distances, epsilon)
    return exact_audit(lambda rows: table[rows], np.arange(len(distances)), between(distances), epsilon)


def between(distances: Floats) -> Distances:
    return lambda first, second: distances[np.ix_(first, second)]


def sampled(mechanism: Any, n: int, epsilon: float, samples: int = SAMPLES, seed: int = 1) -> SampledResult:
    """Draws of the mechanism itself, of each of its first n words."""
    ids, budgets = np.arange(n), np.full(samples, epsilon)
    noise = [mechanism.noise(budgets, stream(seed, "suite", str(word))) for word in range(n)]
    draws = [mechanism.replace(np.full(samples, word), budgets, noise[word]) for word in range(n)]
    return sampled_audit(draws, epsilon * distances_of(mechanism)(ids, ids), epsilon, 1 - FALSE_ALARM)
