"""The epsilon at which an adversary is expected to get back a given share: a function of public
things only.

Recovery is computed at points of a fixed lattice of ε, with the same words and the same noise at
each (common random numbers, so that two points differ by ε and hardly by chance), and read off
between neighbouring points. Whatever is asked of a mechanism needs the same few points, so that
they can be kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from lexveil.errors import RequestError, option
from lexveil.recovery.bands import ALL, BANDS, BANDS_OF
from lexveil.recovery.shares import Expected, Share
from lexveil.types import Bytes, Floats

# points of the lattice in each doubling of ε: between two of them recovery is a line to some
# thousandths
STEPS = 4
DOUBLINGS = 29  # of the lattice on both sides of ε = 1: about as far as a base ε may lie
LAST = DOUBLINGS * STEPS  # number of its last point; -LAST is that of the first
DIGITS = 3  # that an ε is given with


Measure = Callable[[Expected, str], float]  # what a target is of, in a band


class Calibrated(NamedTuple):
    """An ε, rounded down, and what is expected there."""

    epsilon: float
    expected: Expected


class Curve:
    """What is expected at any ε, of one mechanism over one vocabulary.

    Attributes:
        blind: share of words that an adversary names who sees no output, by band and of all.
        points: what was computed, by the number k of the point ε = 2^(k / STEPS).
    """

    def __init__(
        self,
        compute: Callable[[float], Expected],
        blind: Mapping[str, float],
        points: Mapping[int, Expected] | None = None,
    ) -> None:
        self._compute, self.blind, self.points = compute, blind, dict(points or {})

    def point(self, number: int) -> Expected:
        """What is expected at one point of the lattice; computed when it is first asked for."""
        if number not in self.points:
            self.points[number] = self._compute(self.epsilon(number))
        return self.points[number]

    @staticmethod
    def epsilon(number: int) -> float:
        """The ε of a point."""
        return float(2.0 ** (number / STEPS))

    @staticmethod
    def number(epsilon: float) -> int:
        """The point nearest to ε."""
        return round(STEPS * math.log2(epsilon))

    def at(self, epsilon: float) -> Expected:
        """What is expected at any ε: between two points, by the logarithm of ε."""
        exact = min(max(math.log2(epsilon), -DOUBLINGS), DOUBLINGS) * STEPS
        low = math.floor(exact)
        part = exact - low
        if not part:
            return self.point(low)
        below, above = self.point(low), self.point(low + 1)
        return Expected(
            epsilon,
            {band: _between(below.recovered[band], above.recovered[band], part) for band in BANDS},
            {band: _between(below.unchanged[band], above.unchanged[band], part) for band in BANDS},
            below.mass,
            {name: one.towards(above.told[name], part) for name, one in below.told.items()},
            below.in_context,
        )


def epsilon_for(
    curve: Curve, target: float, band: str = ALL, measure: Measure | None = None, start: float = 1.0
) -> Calibrated:
    """The largest ε at which expected recovery is at most ``target``, by bisection; rounded down to
    three digits.

    Args:
        band: of which words; ``all`` is the mean over all perturbed ones, ``content`` that over all
            but function words.
        measure: what the target is of; by default the share recovered.
        start: ε near which the search begins; it changes how long it takes.

    Raises:
        RequestError: if no ε gives the target: an adversary names more without any output, or less
            at every ε.
    """
    value, of = measure or recovered, "all words" if band == ALL else f"{band} words"
    if target <= curve.blind[band]:
        raise RequestError(
            f"recovery {target:g} of {of}: a reader who sees no output already names "
            f"{curve.blind[band]:.3f} of them, "
            "by guessing the most frequent one always; ask for more, or of another band "
            f"({option('band')} rare)"
        )

    def holds(number: int) -> bool:
        return value(curve.point(number), band) <= target

    low, high = bracket(holds, curve.number(start))
    if high > LAST or low < -LAST:
        end, which, more = (LAST, "largest", "less") if high > LAST else (-LAST, "smallest", "more")
        raise RequestError(
            f"recovery {target:g} of {of}: the {which} epsilon, {curve.epsilon(end):g}, gives back "
            f"{value(curve.point(end), band):.3f}; ask for {more}"
        )
    below, above = value(curve.point(low), band), value(curve.point(high), band)
    epsilon = _rounded_down(2.0 ** ((low + (target - below) / (above - below)) / STEPS))
    return Calibrated(epsilon, curve.at(epsilon))


def bracket(holds: Callable[[int], bool], start: int) -> tuple[int, int]:
    """Two neighbouring points of the lattice, of which the first holds and the second does not.

    By steps that double from ``start`` on, then by bisection. Beyond the ends of the lattice
    everything below holds and nothing above does.
    """
    low = high = max(-LAST, min(LAST, start))
    step = 1
    if holds(low):
        while (high := low + step) <= LAST and holds(high):
            low, step = high, 2 * step
    else:
        while (low := high - step) >= -LAST and not holds(low):
            high, step = low, 2 * step
    low, high = max(low, -LAST - 1), min(high, LAST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def recovered(expected: Expected, band: str) -> float:
    """The share that an adversary is expected to name, of a band or of all."""
    return expected.overall(expected.recovered, band)


def unchanged(expected: Expected, band: str) -> float:
    """The share that is expected to come out as it is, of a band or of all."""
    return expected.overall(expected.unchanged, band)


def given_back(expected: Expected, band: str) -> float:
    """The larger of the two: an adversary may name another word where the output is the true one,
    or the reverse.
    """
    return max(recovered(expected, band), unchanged(expected, band))


def without_output(prior: Floats, bands: Bytes) -> dict[str, float]:
    """What an adversary who sees no output names, by band and of all: always the most frequent
    word.
    """
    best = int(np.argmax(prior))
    mass = {band: float(prior[bands == number].sum()) for number, band in enumerate(BANDS)}
    return {
        name: float(prior[best]) / sum(mass[band] for band in together)
        if BANDS[bands[best]] in together
        else 0.0
        for name, together in BANDS_OF.items()
    }


def _between(below: Share, above: Share, part: float) -> Share:
    pairs = ((below.share, above.share), (below.low, above.low), (below.high, above.high))
    return Share(below.n, *((1 - part) * first + part * second for first, second in pairs))


def _rounded_down(epsilon: float) -> float:
    digits = DIGITS - 1 - math.floor(math.log10(epsilon))
    return round(math.floor(epsilon * 10.0**digits) / 10.0**digits, max(digits, 0))
