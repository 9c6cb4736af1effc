"""Mahalanobis: MADLIB at λ = 0, its covariance and its metric elsewhere."""

import numpy as np
import pytest

from lexveil.mechanisms.kernels import mahalanobis as kernels
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis
from lexveil.mechanisms.noise.streams import stream
from tests.mechanisms.toys import vectors


def stretched() -> np.ndarray:
    return vectors(60) * np.array([4, 2, 1, 0.5, 0.1], dtype=np.float32)


def test_lambda_0_is_madlib_bit_for_bit() -> None:
    some, budgets, ids = stretched(), np.geomspace(0.1, 50, 60), np.arange(60)
    plain, other = Madlib(some), Mahalanobis(some, lambda_=0.0)
    noise = plain.noise(budgets, stream(1, "x"))
    assert (other.noise(budgets, stream(1, "x")) == noise).all()
    assert (other.replace(ids, budgets, noise) == plain.replace(ids, budgets, noise)).all()
    assert other.distance(ids, ids[::-1]) == pytest.approx(plain.distance(ids, ids[::-1]))


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
