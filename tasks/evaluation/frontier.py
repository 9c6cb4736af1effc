"""What is worth choosing: runs that no other run beats in both utility and privacy, and the one that fits limits.

Utility is better the larger, attack (an attacker's success) the smaller. Both are estimates: each has a standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from tasks.errors import ParameterError

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Standing = Literal["frontier", "undecided", "dominated"]

CONFIDENCE = 0.95  # one-sided


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how sure it is.

    Attributes:
        mean: in the unit of its measure.
        standard_error: of the mean; 0 where none is known.
        degrees: degrees of freedom of the standard error; infinite where it does not come from repetitions.
    """

    mean: float
    standard_error: float = 0.0
    degrees: float = float("inf")

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and np.isfinite(self.standard_error) and self.standard_error >= 0):
            raise ParameterError(
                f"an estimate has mean {self.mean} and standard error {self.standard_error}; leave out runs that were "
                "not measured"
            )

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """From independent repetitions, such as shuffles. One repetition alone says nothing of its error.

        Raises:
            ParameterError: if there is none.
        """
        if not len(values):
            raise ParameterError("an estimate needs at least one value")
        if len(values) == 1:
            return cls(float(values[0]))
        return cls(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))), len(values) - 1)

    @property
    def margin(self) -> float:
        """How far the true value may lie on one side of the mean, at CONFIDENCE."""
        return float(_quantile(np.array(self.degrees)) * self.standard_error)


@dataclass(frozen=True, slots=True)
class Point:
    """One run: what it is called, its utility and the success of attacks on it."""

    label: str
    utility: Estimate
    attack: Estimate


def standings(points: Sequence[Point]) -> list[Standing]:
    """The standing of each of n points.

    ``frontier``: no other point has at least its utility and at most its attack, and one of the two better.
    ``dominated``: some point is better in both by more than chance explains (Welch's t, CONFIDENCE for each of the two
    comparisons; comparisons of many runs are not corrected for their number). ``undecided``: better means, but not as
    sure. Without standard errors there is no third case.
    """
    better = np.ones((len(points), len(points)), dtype=np.bool_)  # [i, j]: j beats i
    surely = better.copy()
    strictly = np.zeros_like(better)
    for sign, estimates in ((1, [one.utility for one in points]), (-1, [one.attack for one in points])):
        gain = sign * _differences([one.mean for one in estimates])
        better &= gain >= 0
        strictly |= gain > 0
        surely &= gain >= _margins(estimates)
    better &= strictly
    surely &= strictly
    return [
        "dominated" if sure else "undecided" if beaten else "frontier"
        for sure, beaten in zip(np.asarray(surely.any(axis=1)), np.asarray(better.any(axis=1)), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What fits the limits.

    Attributes:
        point: the run to take; None if no run surely keeps the limits.
        fitting: all that keep them, the recommended first.
        nearest: if none does, the run that misses them by least; a statement, not advice.
        shortfall: by how much ``nearest`` misses them, margins included, the two limits added up; else 0.
    """

    point: Point | None
    fitting: tuple[Point, ...]
    nearest: Point | None
    shortfall: float


def recommend(
    points: Sequence[Point], *, min_utility: float | None = None, max_attack: float | None = None
) -> Recommendation:
    """Choose a run within limits.

    A run keeps a limit if it does so with its margin of error. Of those that keep all limits, the one with the lowest
    attack is recommended; if only attack is limited, the one with the highest utility. Ties go to the better other
    measure, then to the first label.

    Args:
        points: the runs.
        min_utility: smallest utility that will do.
        max_attack: largest success of attacks that will do.

    Raises:
        ParameterError: if no limit is given, or there is no run.
    """
    if min_utility is None and max_attack is None:
        raise ParameterError("nothing to recommend by: give min_utility, max_attack or both")
    if not points:
        raise ParameterError("there is no run to recommend; measure utility and attacks first")

    def missing(point: Point) -> float:
        low = 0.0 if min_utility is None else min_utility - (point.utility.mean - point.utility.margin)
        high = 0.0 if max_attack is None else point.attack.mean + point.attack.margin - max_attack
        return max(low, 0.0) + max(high, 0.0)

    def rank(point: Point) -> tuple[float, float, str]:
        utility, attack = -point.utility.mean, point.attack.mean
        return (utility, attack, point.label) if min_utility is None else (attack, utility, point.label)

    fitting = tuple(sorted((point for point in points if missing(point) == 0), key=rank))
    if fitting:
        return Recommendation(fitting[0], fitting, None, 0.0)
    nearest = min(points, key=lambda point: (missing(point), *rank(point)))
    return Recommendation(None, (), nearest, missing(nearest))


def _differences(values: Sequence[float]) -> Floats:
    """(n, n), [i, j]: value j minus value i."""
    array = np.array(values, dtype=np.float64)
    return np.subtract.outer(array, array).T


def _margins(estimates: Sequence[Estimate]) -> Floats:
    """(n, n): by how much two means differ by chance, Welch's t at CONFIDENCE."""
    variance = np.array([one.standard_error**2 for one in estimates], dtype=np.float64)
    spread = variance**2 / np.array([one.degrees for one in estimates], dtype=np.float64)
    summed, spreads = np.add.outer(variance, variance), np.add.outer(spread, spread)
    degrees = np.divide(summed**2, spreads, out=np.full(summed.shape, np.inf), where=spreads > 0)
    margins: Floats = _quantile(degrees) * np.sqrt(summed)
    return margins


def _quantile(degrees: Floats) -> Floats:
    quantile: Floats = student.ppf(CONFIDENCE, degrees)
    return quantile
