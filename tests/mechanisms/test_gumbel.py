"""Truncated Gumbel: its calibration, its noise, its law on a toy."""

import numpy as np
import pytest
from scipy.special import lambertw

from lexveil.errors import ParameterError
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel

LINE = np.array([[0.0], [1.0], [2.5], [6.0]], dtype=np.float32)


def test_the_smallest_epsilon_is_named_and_sharp() -> None:
    """aΔmin > 1 means ε > (3 + 2(1 + ln V))/Δmin."""
    mechanism = TruncatedGumbel(LINE)
    assert (mechanism.smallest, mechanism.largest) == (1.0, 6.0)
    paper = TruncatedGumbel(LINE, calibration="paper")
    assert np.isfinite(paper.scale(np.array([0.01, 1.0, 7.8, 1e6]))).all() and paper.no_guarantee is not None
    limit = 3 + 2 * (1 + np.log(4))
    assert mechanism.smallest_epsilon == pytest.approx(limit)
    with pytest.raises(ParameterError, match=rf"needs more than {limit:.6g}.*calibration: paper"):
        mechanism.noise(np.array([limit * 0.999]), stream(1))
    b = mechanism.scale(np.array([limit * 2]))[0]
    a = (2 * limit - 2 * (1 + np.log(4))) / 3
    w = 12 / b  # b = 2Δmax / min(W₀(2aΔmax), ln(aΔmin))
    assert w == pytest.approx(min(lambertw(12 * a).real, np.log(a)))
