"""Truncated Gumbel: its calibration, its noise, its law on a toy."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import lambertw
from scipy.stats import poisson

from lexveil.errors import ParameterError
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel
from tests.mechanisms.toys import draw, fits, vectors

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


@pytest.mark.parametrize(("budget_error", "follows"), [(1.0, True), (4.0, False)])
def test_draws_follow_the_integral(budget_error: float, follows: bool) -> None:
    """Pr[u] = Σ_k Pr[k]·∫ f(x - d_u) Π_{v≠u} (1 - F(x - d_v)) dx over the k nearest words."""
    mechanism = TruncatedGumbel(LINE)
    epsilon = 60.0
    b = mechanism.scale(np.array([epsilon * budget_error]))[0]
    cut = [np.exp(-np.exp(-x / b)) for x in (-6.0, 6.0)]

    def cdf(x: float) -> float:
        return (np.exp(-np.exp(-np.clip(x, -6, 6) / b)) - cut[0]) / (cut[1] - cut[0])

    def density(x: float) -> float:
        return np.exp(-x / b - np.exp(-x / b)) / b / (cut[1] - cut[0]) if -6 <= x <= 6 else 0.0

    gaps, words = np.array([0.0, 1.0, 1.5, 5.0]), [1, 0, 2, 3]
    law = np.zeros(4)
    weights = poisson.pmf(np.arange(1, 5), np.log(4))
    for k, weight in enumerate(weights / weights.sum(), start=1):
        for u in range(k):

            def inside(x: float, u: int = u, k: int = k) -> float:
                return density(x - gaps[u]) * np.prod([1 - cdf(x - gaps[v]) for v in range(k) if v != u])

            law[words[u]] += weight * quad(inside, gaps[u] - 6, gaps[u] + 6, limit=200, points=[gaps[u]])[0]
    assert law.sum() == pytest.approx(1, abs=1e-6)
    assert fits(draw(mechanism, 1, epsilon), law) == follows


def test_bad_parameters() -> None:
    some = vectors()
    some[5] = some[2]
    with pytest.raises(ParameterError, match="same vector"):
        TruncatedGumbel(some)
    with pytest.raises(ParameterError, match="calibration"):
        TruncatedGumbel(LINE, calibration="other")
    with pytest.raises(ParameterError, match="two words"):
        TruncatedGumbel(LINE[:1])
