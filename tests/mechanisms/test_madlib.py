"""MADLIB against its law, with negative controls."""

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import build_mechanism

SAMPLES = 20_000


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


def test_unknown_mechanism() -> None:
    with pytest.raises(ParameterError, match="madlib"):
        build_mechanism("madlb", np.zeros((1, 1), dtype=np.float32))
