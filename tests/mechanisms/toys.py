"""Small vocabularies, and the one test of draws against a law."""

from typing import Any

import numpy as np
from scipy.stats import chisquare

from lexveil.core.mechanisms.base import Mechanism
from lexveil.core.mechanisms.noise.streams import stream

SAMPLES = 40_000
FALSE_ALARM = 1e-6  # chance that a correct sampler fails; the seed is fixed, so paid once


def vectors(n: int = 12, p: int = 5, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p)).astype(np.float32)


class Loaded(Mechanism):
    """Draws from a table, whatever epsilon."""

    name = metric = guarantee = "loaded"

    def __init__(self, channel: Any) -> None:
        self.channel = np.array(channel)
        self.size = len(self.channel)

    def noise(self, epsilon: Any, rng: np.random.Generator) -> Any:
        return rng.random((len(epsilon), 1))

    def replace(self, ids: Any, epsilon: Any, noise: Any) -> Any:
        return (noise >= self.channel.cumsum(axis=1)[ids, :-1]).sum(axis=1)


class Known(Loaded):
    """A loaded mechanism that also states its distribution."""

    def log_pmf(self, ids: Any, epsilon: Any, before: int = -1) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self.channel[ids])


def draw(
    mechanism, word: int, epsilon: float, name: str = "draw", samples: int = SAMPLES
) -> np.ndarray:
    ids = np.full(samples, word)
    budgets = np.full(samples, epsilon)
    return mechanism.replace(ids, budgets, mechanism.noise(budgets, stream(7, name)))


def fits(drawn: np.ndarray, law: np.ndarray) -> bool:
    """Chi-squared; what is expected fewer than five times is counted together."""
    expected = law / law.sum() * len(drawn)
    seen = np.bincount(drawn, minlength=len(law)).astype(float)
    often = expected >= 5
    seen = np.append(seen[often], seen[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    if expected[-1] == 0:
        if seen[-1]:
            return False
        seen = seen[:-1]
        expected = expected[:-1]
    return len(seen) == 1 or chisquare(seen, expected).pvalue > FALSE_ALARM


def largest_loss(mechanism, epsilon: float) -> float:
    """Exact, over all pairs and outputs: the largest excess of |ln P(y|w) - ln P(y|w')| over
    ε·d(w,w')."""
    n = mechanism.size
    log_p = mechanism.log_pmf(np.arange(n), np.full(n, epsilon))
    assert np.allclose(np.exp(log_p).sum(axis=1), 1)
    loss = np.abs(log_p[:, None] - log_p[None, :]).max(axis=2)
    first, second = np.divmod(np.arange(n * n), n)
    return float((loss - epsilon * mechanism.distance(first, second).reshape(n, n)).max())
