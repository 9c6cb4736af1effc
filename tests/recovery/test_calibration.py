"""The epsilon of a target, on curves that are known and on a toy whose recovery is a sum over its table."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from lexveil.errors import RequestError
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.tem import Tem
from lexveil.recovery.adversary import TableAdversary
from lexveil.recovery.bands import ALL, BANDS, bands_of, prior_of
from lexveil.recovery.calibration import Curve, epsilon_for, given_back, without_output
from lexveil.recovery.shares import Expected, Sample, Share, expected

BLIND = {**dict.fromkeys(BANDS, 0.0), ALL: 0.05, "function": 0.1}
MASS = {"function": 0.5, "frequent": 0.3, "middle": 0.1, "rare": 0.1}


def curve(recovered: Callable[[float], float], largest: float = 1.0) -> Curve:
    """A curve of which all bands give back the same."""

    def compute(epsilon: float) -> Expected:
        shares = {band: Share(100, largest * recovered(epsilon), 0.0, 1.0) for band in BANDS}
        return Expected(epsilon, shares, {band: Share(100, 0.5, 0.0, 1.0) for band in BANDS}, MASS)

    return Curve(compute, BLIND)


@pytest.mark.parametrize("middle", [1e-6, 0.3, 1.0, 7.7, 5000.0])
@pytest.mark.parametrize("target", [0.06, 0.5, 0.93])
def test_the_epsilon_of_a_known_curve(middle: float, target: float) -> None:
    """Recovery e/(e + m) is the target at m·t/(1 - t); read off between points it is right to some thousandths."""
    found = epsilon_for(curve(lambda epsilon: epsilon / (epsilon + middle)), target)
    assert found.epsilon == pytest.approx(middle * target / (1 - target), rel=0.01)
    assert target - 0.003 < found.expected.recovered["rare"].share <= target
    assert float(f"{found.epsilon:.3g}") == found.epsilon


def test_points_are_computed_once_and_serve_all_targets() -> None:
    asked: list[float] = []
    given = curve(lambda epsilon: epsilon / (epsilon + 3))
    known = Curve(lambda epsilon: asked.append(epsilon) or given.point(round(4 * math.log2(epsilon))), BLIND)  # type: ignore[func-returns-value]
    first = epsilon_for(known, 0.4)
    assert len(asked) == len(set(asked)) < 10
    n_asked = len(asked)
    assert epsilon_for(known, 0.4) == first == epsilon_for(Curve(asked.append, BLIND, known.points), 0.4)  # type: ignore[arg-type]
    assert len(asked) == n_asked and known.has(first.epsilon) and not known.has(500.0)


@pytest.mark.parametrize(
    ("target", "band", "message"),
    [
        (0.04, ALL, "already names 0.050"),
        (0.1, "function", "already names 0.100"),
        (0.9, "rare", "not even the largest epsilon gives back so much, 0.8"),
        (0.0, ALL, "between 0 and 1"),
        (1.0, ALL, "between 0 and 1"),
        (math.nan, ALL, "between 0 and 1"),
    ],
)
def test_a_target_that_no_epsilon_gives_is_refused(target: float, band: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        epsilon_for(curve(lambda epsilon: epsilon / (epsilon + 1), largest=0.8), target, band)


def test_what_no_epsilon_hides_is_said() -> None:
    with pytest.raises(RequestError, match="even the smallest epsilon gives back"):
        epsilon_for(curve(lambda epsilon: 0.2), 0.3, "rare", given_back)


def test_the_reader_without_output_is_the_limit_of_no_epsilon() -> None:
    counts = np.array([500, 200, 40, 30, 20, 9, 5, 3, 2, 1])
    prior, bands = prior_of(counts), bands_of(counts, np.arange(10) < 2)
    tem = Tem(np.random.default_rng(3).normal(size=(10, 3)).astype(np.float32))
    blind = without_output(prior, bands)
    reader = TableAdversary(tem, prior)
    assert np.all(reader.guess(np.arange(10), np.full(10, 1e-6)) == 0)
    assert blind[ALL] == prior[0] and blind["rare"] == 0 and blind["function"] == prior[0] / (prior[0] + prior[1])
    sample = Sample.draw(prior, bands, stream(1, "sample"))
    computed = Curve(lambda epsilon: expected(tem, reader, sample, epsilon, stream(1, "noise")), blind)
    joint = prior[:, None] * np.exp(tem.log_pmf(np.arange(10), np.full(10, epsilon_for(computed, 0.8).epsilon)))
    assert joint.max(axis=0).sum() == pytest.approx(0.8, abs=0.03)  # 2,000 words of a band, 3 deviations
