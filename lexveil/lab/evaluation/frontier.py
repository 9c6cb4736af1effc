"""Pareto frontier of runs that no other run beats in both utility and privacy, and recommendation
of a run within limits.

Larger utility is better; smaller attack (an attacker's success) is better. Both are estimates with
a standard error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import t as student

from lexveil.base.errors import ParameterError
from lexveil.base.types import Flags, Floats

Standing = Literal["frontier", "undecided", "dominated"]

CONFIDENCE = 0.95  # one-sided


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated mean with its standard error.

    Attributes:
        mean: the mean, in the unit of its measure.
        standard_error: standard error of the mean; 0 if it is unknown.
        degrees: degrees of freedom of the standard error; infinite if it does not come from
            repetitions.
    """

    mean: float
    standard_error: float = 0.0
    degrees: float = float("inf")

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Estimate the mean and its standard error from independent repetitions, such as shuffles.
        One repetition alone gives no standard error.
        """
        if len(values) == 1:
            return cls(float(values[0]))
        return cls(
            float(np.mean(values)),
            float(np.std(values, ddof=1) / np.sqrt(len(values))),
            len(values) - 1,
        )

    def asked_of(self, n: int) -> Estimate:
        """Return the estimate with the added sampling error of evaluating only ``n`` documents,
        which repetitions do not show.

        The two errors are independent: their squares add up, and the formula of Welch and
        Satterthwaite gives the degrees of freedom.
        """
        return self.with_variance(share_error(self.mean, n) ** 2)

    def with_variance(self, more: float) -> Estimate:
        """Return the estimate with the added variance of an independent error that has infinitely
        many degrees of freedom.
        """
        variance = self.standard_error**2 + more
        degrees = (
            variance**2 / self.standard_error**4 * self.degrees
            if self.standard_error
            else float("inf")
        )
        return Estimate(self.mean, float(np.sqrt(variance)), float(degrees))

    @property
    def margin(self) -> float:
        """Greatest distance of the true value from the mean on one side, at the confidence
        CONFIDENCE.
        """
        return float(_quantile(np.array(self.degrees)) * self.standard_error)


def share_error(share: float, n: int) -> float:
    """Return the standard error of a share that was observed in n documents; 1.96 times this error
    is half of Agresti and Coull's (1998) 95% interval.

    Macro F1 is treated as a share of right answers, which it nearly is if classes have the same
    size. Unlike √(p(1-p)/n), the error is not 0 if all answers were right.
    """
    moved = (share * n + 2) / (n + 4)
    return float(np.sqrt(moved * (1 - moved) / (n + 4)))


@dataclass(frozen=True, slots=True)
class Point:
    """One run as a point of the trade-off: its label, its utility, the success of attacks on it,
    and both measures by document if they are known.
    """

    label: str
    utility: Estimate
    attack: Estimate
    paired_utility: Paired | None = None
    paired_attack: Paired | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """One score of one run, with its values by training and by document, for paired comparison with
    other runs on the same documents after the same trainings.

    Attributes:
        each: (s,) the score of every training.
        right: (n,) share of the trainings that classify each document correctly.
    """

    each: Floats
    right: Floats

    def margin(self, other: Paired) -> float:
        """Return the greatest difference between the means of two runs that chance explains,
        one-sided at CONFIDENCE.

        The paired differences have two errors, which are added as in ``Estimate.asked_of``: the
        error of the trainings and the error of the documents. The error of n documents is √((Σd² +
        1)/m − (Σd/m)²)/√m with m = n + 2: each run is credited with half a document more that it
        alone classifies correctly (Agresti and Min 2005), so that equal results do not give a
        margin of 0. Documents that both runs classify correctly, or both wrongly, add nothing, so
        this margin is smaller than the margin of independent runs.

        Raises:
            ParameterError: if the two runs have different documents or trainings.
        """
        if (
            len(self.each) != len(other.each)
            or len(self.right) != len(other.right)
            or not len(self.right)
        ):
            raise ParameterError(
                "runs of different documents or trainings have no paired difference; `lexveil "
                "run` renews stale runs"
            )
        trainings = Estimate.of((self.each - other.each).tolist())
        differences = self.right - other.right
        m = len(self.right) + 2
        variance = float((np.sum(differences**2) + 1) / m - (np.sum(differences) / m) ** 2) / m
        return trainings.with_variance(variance).margin


def standings(points: Sequence[Point]) -> list[Standing]:
    """Return for each of n runs whether it is on the Pareto frontier of utility and attack,
    dominated, or undecided.

    ``frontier``: every other point has lower utility or higher attack, or equals this point in
    both. ``dominated``: some point is better in both by more than chance explains (CONFIDENCE for
    each of the two comparisons, by paired differences if both points have them, else by Welch's t;
    comparisons of many runs are not corrected for their number). ``undecided``: some point has
    better means, but not significantly; without standard errors this case does not occur.
    """
    better = np.ones((len(points), len(points)), dtype=np.bool_)  # [i, j]: j beats i
    surely = better.copy()
    strictly = np.zeros_like(better)
    for sign, (differences, margins) in zip((1, -1), _measures(points), strict=True):
        gain = sign * differences
        better &= gain >= 0
        strictly |= gain > 0
        surely &= gain >= margins
    better &= strictly
    surely &= strictly
    return [
        "dominated" if sure else "undecided" if beaten else "frontier"
        for sure, beaten in zip(
            np.asarray(surely.any(axis=1)), np.asarray(better.any(axis=1)), strict=True
        )
    ]


def indistinguishable(points: Sequence[Point]) -> Flags:
    """Return a matrix (n, n) of flags: whether chance alone may explain the differences of two runs
    in utility and in attack.

    Each comparison is at CONFIDENCE: by paired differences if both points have them, else by
    Welch's t.
    """
    same = np.ones((len(points), len(points)), dtype=np.bool_)
    for differences, margins in _measures(points):
        same &= np.abs(differences) <= margins
    return same


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The runs that keep the limits of utility and attack, and the recommended one.

    Attributes:
        fitting: the runs whose mean scores keep the limits, the best first.
        sure: the runs of ``fitting`` that also keep the limits with their margins of error, in the
            same order.
        nearest: if no run keeps the limits, the run that misses them by least; it is not
            recommended.
        shortfall: sum of the amounts by which the means of ``nearest`` miss the limits; 0 if some
            run keeps them.
    """

    fitting: tuple[Point, ...]
    sure: tuple[Point, ...]
    nearest: Point | None
    shortfall: float

    @property
    def point(self) -> Point | None:
        """The recommended run: the best of ``sure``, else the best of ``fitting``, else None."""
        return next(iter(self.sure + self.fitting), None)


def recommend(
    points: Sequence[Point], *, min_utility: float | None = None, max_attack: float | None = None
) -> Recommendation:
    """Choose a run by its utility and the success of attacks, within limits.

    Among the runs that keep all limits, the run with the lowest attack is best; if only attack is
    limited, the run with the highest utility is best. A tie is decided by the other measure, then
    by the first label.

    Args:
        points: the runs.
        min_utility: smallest acceptable utility.
        max_attack: largest acceptable success of attacks; at least one of the two limits is given.

    Raises:
        ParameterError: if there is no run.
    """
    if not points:
        raise ParameterError("there is no run to recommend; measure utility and attacks first")

    def missing(point: Point, margins: float = 0) -> float:
        utility = point.utility.mean - margins * point.utility.margin
        attack = point.attack.mean + margins * point.attack.margin
        low = 0.0 if min_utility is None else max(min_utility - utility, 0.0)
        return low + (0.0 if max_attack is None else max(attack - max_attack, 0.0))

    def rank(point: Point) -> tuple[float, float, str]:
        utility = -point.utility.mean
        attack = point.attack.mean
        return (
            (utility, attack, point.label)
            if min_utility is None
            else (attack, utility, point.label)
        )

    fitting = tuple(sorted((point for point in points if missing(point) == 0), key=rank))
    if fitting:
        return Recommendation(
            fitting, tuple(point for point in fitting if missing(point, 1) == 0), None, 0.0
        )
    nearest = min(points, key=lambda point: (missing(point), *rank(point)))
    return Recommendation((), (), nearest, missing(nearest))


def _measures(points: Sequence[Point]) -> Iterator[tuple[Floats, Floats]]:
    """Yield two (n, n) arrays for utility, then two for attack: the differences, where [i, j] is
    value j minus value i, and the margins that chance explains.

    The margin of two means is the margin of their paired difference, or Welch's t, at CONFIDENCE.
    """
    for estimates, paired in (
        ([point.utility for point in points], [point.paired_utility for point in points]),
        ([point.attack for point in points], [point.paired_attack for point in points]),
    ):
        mean, error, degrees = (
            np.array([getattr(estimate, name) for estimate in estimates], dtype=np.float64)
            for name in ("mean", "standard_error", "degrees")
        )
        variance = error**2
        summed = np.add.outer(variance, variance)
        spreads = np.add.outer(*[variance**2 / degrees] * 2)
        of_both = np.divide(
            summed**2, spreads, out=np.full(summed.shape, np.inf), where=spreads > 0
        )
        margins = _quantile(of_both) * np.sqrt(summed)
        for i, first in enumerate(paired):
            for j, second in enumerate(paired[:i]):
                if first is not None and second is not None:
                    margins[i, j] = margins[j, i] = first.margin(second)
        yield np.subtract.outer(mean, mean).T, margins


def _quantile(degrees: Floats) -> Floats:
    quantile: Floats = student.ppf(CONFIDENCE, degrees)
    return quantile
