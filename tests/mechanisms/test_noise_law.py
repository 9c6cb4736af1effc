"""The noise of MADLIB and Mahalanobis in 300 dimensions: radius, direction, covariance, each with
what must fail."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import beta, gamma, kstest

from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.noise.streams import stream
from tests.mechanisms.toys import FALSE_ALARM

pytestmark = pytest.mark.slow

P = 300
EPSILON = 2.5
# 24,000 draws, some 20 MB at a time
BLOCKS = 3
BLOCK = 8_000


@cache
def embedding():
    """Return an embedding that spreads 30 times as far along its first axis as along its last, with
    rotated axes.
    """
    rng = np.random.default_rng(12)
    turned, _ = np.linalg.qr(rng.standard_normal((P, P)))
    return ((rng.standard_normal((700, P)) * np.geomspace(6, 0.2, P)) @ turned + 1).astype(
        np.float32
    )


def misfits(noise, name, blocks=BLOCKS):
    """Return the statistics of the draws that do not fit the density ∝ exp(-ε|z|): radius Gamma(p,
    1/ε), direction uniform on the sphere.

    The square of a uniform direction's coordinate, along any fixed axis, is distributed as
    Beta(1/2, (p-1)/2), its sign is fair, and the squares of a half of its coordinates sum to
    Beta(p/4, p/4); none of them depends on the radius.
    """
    rng = stream(17, "noise law", name)
    axis = np.random.default_rng(1).standard_normal(P)
    axis /= np.linalg.norm(axis)
    radii = []
    along = []
    first = []
    half = []
    for _ in range(blocks):
        drawn = noise(rng)
        radius = np.linalg.norm(drawn, axis=1)
        unit = drawn / radius[:, None]
        radii.append(radius)
        along.append(unit @ axis)
        first.append(unit[:, 0])
        half.append((unit[:, : P // 2] ** 2).sum(axis=1))
    radius, cosine, coordinate, share = map(np.concatenate, (radii, along, first, half))
    symmetric = beta((P - 1) / 2, (P - 1) / 2)
    far = radius > np.median(radius)
    found = {
        "radius": kstest(EPSILON * radius, gamma(P).cdf).pvalue,
        "axis": kstest((1 + cosine) / 2, symmetric.cdf).pvalue,
        "coordinate": kstest((1 + coordinate) / 2, symmetric.cdf).pvalue,
        "half": kstest(share, beta(P / 4, P / 4).cdf).pvalue,
        "half of the far ones": kstest(share[far], beta(P / 4, P / 4).cdf).pvalue,
    }
    return {what for what, p_value in found.items() if p_value < FALSE_ALARM}


def uniform(rng):
    direction = rng.standard_normal((BLOCK, P))
    return direction / np.linalg.norm(direction, axis=1, keepdims=True)


def test_madlib():
    mechanism = Madlib(embedding())
    assert misfits(lambda rng: mechanism.noise(np.full(BLOCK, EPSILON), rng), "madlib") == set()


def one_sided(rng):
    """Every direction, but the first coordinate is never negative."""
    noise = rng.gamma(P, 1 / EPSILON, (BLOCK, 1)) * uniform(rng)
    noise[:, 0] = np.abs(noise[:, 0])
    return noise


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        (lambda rng: rng.gamma(P - 1, 1 / EPSILON, (BLOCK, 1)) * uniform(rng), {"radius"}),
        (lambda rng: rng.gamma(P, 1.005 / EPSILON, (BLOCK, 1)) * uniform(rng), {"radius"}),
        (lambda rng: rng.laplace(0, 1 / EPSILON, (BLOCK, P)), {"radius", "coordinate", "half"}),
        (one_sided, {"coordinate"}),
    ],
    ids=["one dimension too few", "half a per cent too long", "laplace by coordinate", "one-sided"],
)
def test_wrong_noise_is_told(noise, what):
    assert misfits(noise, "controls") >= what


@cache
def spread(strength, trace=P):
    """λΣ + (1-λ)I, Σ the covariance of the embedding scaled to this trace; by NumPy's own
    covariance."""
    covariance = np.cov(embedding().astype(np.float64).T)
    return strength * covariance * (trace / np.trace(covariance)) + (1 - strength) * np.eye(P)


@cache
def mahalanobis():
    return Mahalanobis(embedding(), lambda_=0.6)


def whitened(matrix, power=1):
    """The mechanism's noise, seen in coordinates in which ``matrix`` is the identity."""
    mechanism = mahalanobis()
    back = np.linalg.inv(np.linalg.cholesky(np.linalg.matrix_power(matrix, power))).T
    return lambda rng: mechanism.noise(np.full(BLOCK, EPSILON), rng) @ back


def test_mahalanobis():
    """zᵀM⁻¹z is the square of a radius Gamma(p, 1/ε), and L⁻¹z has no preferred direction: M = LLᵀ
    is its shape."""
    assert misfits(whitened(spread(0.6)), "mahalanobis") == set()
    # And the metric, d_RM² = (φ-φ')ᵀM⁻¹(φ-φ'), has the same shape.
    gap = (embedding()[:50].astype(np.float64) - embedding()[50:100]).T
    found = mahalanobis().distance(np.arange(50), np.arange(50, 100))
    assert found == pytest.approx(
        np.sqrt((gap * np.linalg.solve(spread(0.6), gap)).sum(axis=0)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("matrix", "power"),
    [(spread(0.55), 1), (spread(0.0), 1), (spread(0.6, trace=1.05 * P), 1), (spread(0.6), 2)],
    ids=["another λ", "the identity", "another trace", "A for its root"],
)
def test_wrong_shapes_are_told(matrix, power):
    assert misfits(whitened(matrix, power), "mahalanobis", blocks=2) != set()
