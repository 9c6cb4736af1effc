"""Standing of runs on the frontier, with and without uncertainty, and the recommended run."""

import numpy as np
import pytest

from lexveil.base.errors import ParameterError
from lexveil.lab.evaluation.frontier import Estimate, Paired, Point, indistinguishable, standings


def point(label, utility, attack, error=0.0, degrees=2):
    return Point(label, Estimate(utility, error, degrees), Estimate(attack, error, degrees))


@pytest.mark.parametrize("seed", range(5))
def test_frontier_is_what_comparing_all_pairs_finds(seed):
    values = np.random.default_rng(seed).integers(0, 6, (40, 2)) / 5
    beaten = [
        any(u >= own_u and a <= own_a and (u > own_u or a < own_a) for u, a in values)
        for own_u, own_a in values
    ]
    got = standings([point(str(i), *value) for i, value in enumerate(values)])
    assert got == ["dominated" if one else "frontier" for one in beaten]


@pytest.mark.parametrize(
    ("gap", "standing"), [(-0.001, "frontier"), (0.0300, "undecided"), (0.0303, "dominated")]
)
def test_uncertain_points_are_undecided(gap, standing):
    """Three shuffles each: t(4, 95%) = 2.132, and two errors of 0.01 are 0.0141: a margin of
    0.03015."""
    best = point("best", 0.8, 0.4, 0.01)
    other = point("other", 0.8 - gap, 0.5, 0.01)
    assert standings([best, other]) == ["frontier", standing]


@pytest.mark.parametrize(
    ("utility", "attack", "same"), [(0.03, 0.03, True), (0.0303, 0, False), (0, -0.0303, False)]
)
def test_differences_that_chance_explains(utility, attack, same):
    """The margin is 0.03015, as in the test above. A larger difference in utility or attack is
    enough.
    """
    points = [point("a", 0.8, 0.4, 0.01), point("b", 0.8 - utility, 0.4 + attack, 0.01)]
    assert indistinguishable(points).tolist() == [[True, same], [same, True]]
    assert indistinguishable([]).shape == (0, 0)


def test_paired_differences_by_hand():
    """Differences 0, 1, 1, 0 of 4 documents: √((2 + 1)/6 - (2/6)²)/√6 = 0.254588, times
    1.644854."""
    first = Paired(np.array([0.75]), np.array([1.0, 1, 1, 0]))
    other = Paired(np.array([0.25]), np.array([1.0, 0, 0, 0]))
    assert first.margin(other) == other.margin(first) == pytest.approx(0.418760, rel=1e-5)
    # No difference is no certainty: √(1/6)/√6 = 1/6.
    assert first.margin(first) == pytest.approx(1.644854 / 6, rel=1e-6)
    with pytest.raises(ParameterError, match="different documents"):
        first.margin(Paired(np.array([0.5]), np.array([1.0])))
