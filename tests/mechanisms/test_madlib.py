"""MADLIB against its law, with negative controls."""

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from lexveil.errors import ParameterError
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import build_mechanism

SAMPLES = 20_000
FALSE_ALARM = 1e-6  # chance that a correct sampler fails; the seed is fixed, so paid once
DIMENSIONS = 6


def toy() -> Madlib:
    return Madlib(np.random.default_rng(1).standard_normal((12, DIMENSIONS)).astype(np.float32))


@pytest.mark.parametrize(("scale_error", "fits"), [(1.0, True), (0.5, False), (1.05, False)])
def test_noise_has_the_gamma_radius(scale_error: float, fits: bool) -> None:
    """Density exp(-ε|z|) in p dimensions means a radius Gamma(p, 1/ε). Two wrong scales show that this can say no."""
    epsilon = 4.0
    noise = toy().noise(np.full(SAMPLES, epsilon), stream(7, "radius"))
    radius = np.linalg.norm(noise, axis=1)
    fit = kstest(radius, gamma(DIMENSIONS, scale=scale_error / epsilon).cdf)
    assert (fit.pvalue > FALSE_ALARM) == fits


def test_noise_has_no_preferred_direction() -> None:
    """Each coordinate of a uniform direction has mean 0 and variance 1/p, within 6 standard errors."""
    noise = toy().noise(np.ones(SAMPLES), stream(7, "direction"))
    unit = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    assert np.abs(unit.mean(axis=0)).max() < 6 / np.sqrt(DIMENSIONS * SAMPLES)
    covariance = unit.T @ unit / SAMPLES
    assert np.abs(covariance - np.eye(DIMENSIONS) / DIMENSIONS).max() < 6 / (DIMENSIONS * np.sqrt(SAMPLES))


def test_large_epsilon_changes_nothing() -> None:
    ids = np.arange(12)
    madlib = toy()
    budgets = np.full(12, 1e9)
    assert (madlib.replace(ids, budgets, madlib.noise(budgets, stream(1, "x"))) == ids).all()


def test_one_dimension_against_the_closed_form() -> None:
    """Words at 0, 1 and 3 on a line: the output's law is that of Laplace noise between the midpoints 0.5 and 2."""
    madlib = Madlib(np.array([[0.0], [1.0], [3.0]], dtype=np.float32))
    epsilon = 1.5
    ids = np.ones(SAMPLES, dtype=np.int64)
    budgets = np.full(SAMPLES, epsilon)
    drawn = madlib.replace(ids, budgets, madlib.noise(budgets, stream(3, "line")))
    expected = np.array([np.exp(-epsilon * 0.5) / 2, 0.0, np.exp(-epsilon * 1.0) / 2])
    expected[1] = 1 - expected.sum()
    share = np.bincount(drawn, minlength=3) / SAMPLES
    assert np.abs(share - expected).max() < 6 * 0.5 / np.sqrt(SAMPLES)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="finite and greater than 0"):
        toy().noise(np.array([1.0, epsilon]), stream(1))


def test_unknown_mechanism() -> None:
    with pytest.raises(ParameterError, match="madlib"):
        build_mechanism("madlb", np.zeros((1, 1), dtype=np.float32))
