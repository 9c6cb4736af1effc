"""Which runs stand, with and without uncertainty, and which is recommended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.evaluation.frontier import Estimate, Paired, Point, indistinguishable, recommend, share_error, standings


def point(label: str, utility: float, attack: float, error: float = 0.0, degrees: float = 2) -> Point:
    return Point(label, Estimate(utility, error, degrees), Estimate(attack, error, degrees))


def test_frontier_by_hand() -> None:
    """c is worse than b in both, d equals b in utility and is worse in attack, e is a's twin."""
    points = [
        point(*one) for one in [("a", 0.9, 0.8), ("b", 0.7, 0.5), ("c", 0.6, 0.6), ("d", 0.7, 0.6), ("e", 0.9, 0.8)]
    ]
    assert standings(points) == ["frontier", "frontier", "dominated", "dominated", "frontier"]
    assert standings([]) == [] and standings(points[:1]) == ["frontier"]


@pytest.mark.parametrize("seed", range(5))
def test_frontier_is_what_comparing_all_pairs_finds(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 6, (40, 2)) / 5
    beaten = [any(u >= own_u and a <= own_a and (u > own_u or a < own_a) for u, a in values) for own_u, own_a in values]
    got = standings([point(str(i), *value) for i, value in enumerate(values)])
    assert got == ["dominated" if one else "frontier" for one in beaten]


@pytest.mark.parametrize(("gap", "standing"), [(-0.001, "frontier"), (0.0300, "undecided"), (0.0303, "dominated")])
def test_uncertain_points_are_undecided(gap: float, standing: str) -> None:
    """Three shuffles each: t(4, 95%) = 2.132, and two errors of 0.01 are 0.0141: a margin of 0.03015."""
    best, other = point("best", 0.8, 0.4, 0.01), point("other", 0.8 - gap, 0.5, 0.01)
    assert standings([best, other]) == ["frontier", standing]


def test_estimates_of_values() -> None:
    """1, 2, 3: mean 2, standard error 1/√3; t(2, 95%) = 2.920."""
    made = Estimate.of([1.0, 2.0, 3.0])
    assert (made.mean, made.standard_error, made.degrees) == (2.0, pytest.approx(1 / np.sqrt(3)), 2)
    assert made.margin == pytest.approx(2.91999 / np.sqrt(3), rel=1e-5)
    assert Estimate.of([4.0]).margin == 0 and Estimate(1.0, 2.0).margin == pytest.approx(2 * 1.644854, rel=1e-6)


RUNS = [point("low", 0.5, 0.2), point("middle", 0.7, 0.5), point("high", 0.9, 0.8), point("worse", 0.7, 0.6)]


@pytest.mark.parametrize(
    ("limits", "chosen"),
    [
        ({"min_utility": 0.7}, "middle"),
        ({"min_utility": 0.0}, "low"),
        ({"max_attack": 0.7}, "middle"),
        ({"max_attack": 1.0}, "high"),
        ({"min_utility": 0.4, "max_attack": 0.9}, "low"),
        ({"min_utility": 0.8, "max_attack": 0.8}, "high"),
    ],
)
def test_recommended_within_limits(limits: dict[str, float], chosen: str) -> None:
    got = recommend(RUNS, **limits)
    assert got.point is not None and got.point.label == chosen and got.fitting[0] is got.point
    assert got.nearest is None and got.shortfall == 0
    assert recommend(RUNS[::-1], **limits).point is got.point


def test_what_keeps_limits_with_its_margin_of_error_goes_first() -> None:
    """0.72 with error 0.01 of two degrees of freedom may be 0.691; it is better, and less sure."""
    runs = [point("unsure", 0.72, 0.3, 0.01), point("sure", 0.71, 0.4)]
    got = recommend(runs, min_utility=0.7)
    assert got.point is runs[1] and got.sure == (runs[1],) and got.fitting == tuple(runs)
    assert recommend(runs, min_utility=0.69).point is runs[0]
    # Where none is sure, the best by its mean is named.
    assert recommend(runs[:1], min_utility=0.7).point is runs[0] and recommend(runs[:1], min_utility=0.7).sure == ()
    assert recommend(runs[:1], max_attack=0.32).sure == () and recommend(runs[:1], max_attack=0.33).sure != ()


def test_shares_by_hand() -> None:
    """8 of 8: (8 + 2)/12 = 5/6, √(5/6·1/6/12) = 0.10758. Not one of 8 has the same error."""
    assert [share_error(1.0, 8), share_error(0.0, 8)] == pytest.approx([0.1075829] * 2)
    assert share_error(0.5, 10_000) == pytest.approx(0.005, rel=1e-3)


def test_documents_add_their_error() -> None:
    """Errors of 0.1075829 and 0.1 add up to 0.1468806; its degrees are 0.1468806⁴/(0.1⁴/2) = 9.3088."""
    made = Estimate(1.0, 0.1, 2).asked_of(8)
    assert (made.mean, made.standard_error, made.degrees) == (
        1.0,
        pytest.approx(0.1468806, rel=1e-5),
        pytest.approx(9.3088, rel=1e-4),
    )
    assert Estimate(1.0).asked_of(8) == Estimate(1.0, share_error(1.0, 8))


@pytest.mark.parametrize(("utility", "attack", "same"), [(0.03, 0.03, True), (0.0303, 0, False), (0, -0.0303, False)])
def test_differences_that_chance_explains(utility: float, attack: float, same: bool) -> None:
    """As above: the margin is 0.03015. A difference in either is enough."""
    points = [point("a", 0.8, 0.4, 0.01), point("b", 0.8 - utility, 0.4 + attack, 0.01)]
    assert indistinguishable(points).tolist() == [[True, same], [same, True]]
    assert indistinguishable([]).shape == (0, 0)


def test_nothing_fits() -> None:
    got = recommend(RUNS, min_utility=0.8, max_attack=0.6)
    assert got.point is None and got.fitting == ()
    assert got.nearest is RUNS[1] and got.shortfall == pytest.approx(0.1)
    with pytest.raises(ParameterError, match="no run"):
        recommend([], min_utility=0.5)


def test_paired_differences_by_hand() -> None:
    """Differences 0, 1, 1, 0 of 4 documents: √((2 + 1)/6 - (2/6)²)/√6 = 0.254588, times 1.644854."""
    first = Paired(np.array([0.75]), np.array([1.0, 1, 1, 0]))
    other = Paired(np.array([0.25]), np.array([1.0, 0, 0, 0]))
    assert first.margin(other) == other.margin(first) == pytest.approx(0.418760, rel=1e-5)
    # No difference is no certainty: √(1/6)/√6 = 1/6.
    assert first.margin(first) == pytest.approx(1.644854 / 6, rel=1e-6)
    with pytest.raises(ParameterError, match="other documents"):
        first.margin(Paired(np.array([0.5]), np.array([1.0])))


def test_runs_on_the_same_documents_are_told_apart_by_the_documents_that_differ() -> None:
    """70 and 75 of 100 documents: independent runs are alike, not if the 5 are all that differ."""
    low, high = np.arange(100) < 70, np.arange(100) < 75
    for other, alike in ((high, False), (high[::-1], True)):
        points = [
            Point(
                str(right.sum()),
                Estimate(right.mean()).asked_of(100),
                Estimate(0.5),
                Paired(np.array([right.mean()]), right * 1.0),
            )
            for right in (low, other)
        ]
        assert bool(indistinguishable(points)[0, 1]) == alike
        assert indistinguishable([replace(one, paired_utility=None) for one in points]).all()
