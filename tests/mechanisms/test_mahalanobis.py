"""Mahalanobis: MADLIB at λ = 0, its covariance and its metric elsewhere."""

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.mechanisms.kernels import mahalanobis as kernels
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis, scaled_covariance
from lexveil.mechanisms.noise.streams import stream
from tests.mechanisms.toys import SAMPLES, vectors


def stretched() -> np.ndarray:
    return vectors(60) * np.array([4, 2, 1, 0.5, 0.1], dtype=np.float32)


def test_lambda_0_is_madlib_bit_for_bit() -> None:
    some, budgets, ids = stretched(), np.geomspace(0.1, 50, 60), np.arange(60)
    plain, other = Madlib(some), Mahalanobis(some, lambda_=0.0)
    noise = plain.noise(budgets, stream(1, "x"))
    assert (other.noise(budgets, stream(1, "x")) == noise).all()
    assert (other.replace(ids, budgets, noise) == plain.replace(ids, budgets, noise)).all()
    assert other.distance(ids, ids[::-1]) == pytest.approx(plain.distance(ids, ids[::-1]))


def test_covariance_has_trace_p() -> None:
    covariance = scaled_covariance(stretched())
    assert np.trace(covariance) == pytest.approx(5)
    assert covariance / covariance[0, 0] == pytest.approx(np.cov(stretched().T) / np.cov(stretched().T)[0, 0], abs=1e-6)
    assert (scaled_covariance(np.ones((3, 2), dtype=np.float32)) == np.eye(2)).all()


@pytest.mark.parametrize(("wrong", "fits"), [(0.6, True), (0.5, False), (0.0, False)])
def test_noise_has_the_covariance(wrong: float, fits: bool) -> None:
    """E[zzᵀ] = (λΣ+(1-λ)I)·E[r²]/p, E[r²] = p(p+1)/ε². Two wrong λ show that this can say no."""
    epsilon = 3.0
    noise = Mahalanobis(stretched(), lambda_=0.6).noise(np.full(SAMPLES, epsilon), stream(2, "covariance"))
    found = noise.T @ noise / SAMPLES * epsilon**2 / 6
    expected = wrong * scaled_covariance(stretched()) + (1 - wrong) * np.eye(5)
    assert (np.abs(found - expected).max() < 0.1) == fits


def test_the_metric_by_its_formula() -> None:
    some = stretched()
    mechanism = Mahalanobis(some, lambda_=0.6)
    inverse = np.linalg.inv(0.6 * scaled_covariance(some) + 0.4 * np.eye(5))
    gap = some[3].astype(float) - some[9]
    assert mechanism.distance(np.array([3]), np.array([9]))[0] == pytest.approx(np.sqrt(gap @ inverse @ gap))


@pytest.mark.parametrize("strength", [0.0, 0.2, 0.9])
def test_density_moves_by_at_most_epsilon_times_distance(strength: float) -> None:
    """The exponent |A⁻¹(x - φ)| at any point, for two words: within d_RM of each other (triangle inequality)."""
    some = stretched()
    mechanism = Mahalanobis(some, lambda_=strength)
    points = np.random.default_rng(1).standard_normal((200, 5)) * 10
    inverse = np.linalg.inv(mechanism.root)
    exponent = np.linalg.norm((points[:, None] - some[None]) @ inverse, axis=2)
    gap = np.abs(exponent[:, :, None] - exponent[:, None, :]).max(axis=0)
    first, second = np.divmod(np.arange(3600), 60)
    assert (gap.ravel() <= mechanism.distance(first, second) + 1e-9).all()


@pytest.mark.parametrize("strength", [-0.1, 1.0, float("nan")])
def test_bad_lambda(strength: float) -> None:
    with pytest.raises(ParameterError, match=r"mahalanobis\.lambda"):
        Mahalanobis(vectors(), lambda_=strength)


def test_noise_is_the_same_alone_and_among_others() -> None:
    """Bit for bit, whatever the number of rows and of threads: a matrix product of a library is not."""
    rng = np.random.default_rng(1)
    ball, root = rng.standard_normal((37, 60)), rng.standard_normal((60, 60))
    together = np.zeros_like(ball)
    kernels.multiply(ball, root, together)
    assert together == pytest.approx(ball @ root)
    for size in (1, 5, 8):
        parts = np.zeros_like(ball)
        for start in range(0, len(ball), size):
            kernels.multiply(ball[start : start + size], root, parts[start : start + size])
        assert (parts == together).all()
