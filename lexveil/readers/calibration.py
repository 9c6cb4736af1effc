"""Calibration: the epsilon at which an adversary is expected to recover a given share, from public
facts only.

Recovery is computed at points of a fixed lattice of ε, and interpolated between neighbouring
points. All points use the same words and the same noise (common random numbers), so that the
difference of two points is due to ε and hardly to chance. All questions about a mechanism need the
same few points, so the points can be cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.base.types import Bytes, Floats
from lexveil.readers.bands import ALL, BANDS, BANDS_OF
from lexveil.readers.shares import Expected, Share

# lattice points per doubling of ε; between two points recovery is linear up to some thousandths
STEPS_OF_AN_OCTAVE = 4
DOUBLINGS = 29  # doublings on both sides of ε = 1: about the range of a base ε
# number of the last point; the first point has the number -LAST
LAST = DOUBLINGS * STEPS_OF_AN_OCTAVE
DIGITS_OF_EPSILON = 3  # significant digits of a calibrated ε


Measure = Callable[[Expected, str], float]  # share of a band to which a target refers


class Calibrated(NamedTuple):
    """A calibrated ε, rounded down, with the expected word recovery at this ε."""

    epsilon: float
    expected: Expected


class Curve:
    """Curve of expected word recovery as a function of ε, for one mechanism over one vocabulary.

    Attributes:
        blind: share of words that an adversary recovers without seeing any output, by frequency
            band and over all words.
        points: computed points, by the number k of the point ε = 2^(k / STEPS_OF_AN_OCTAVE).
    """

    def __init__(
        self,
        compute: Callable[[float], Expected],
        blind: Mapping[str, float],
        points: Mapping[int, Expected] | None = None,
    ) -> None:
        self._compute, self.blind, self.points = compute, blind, dict(points or {})

    def point(self, number: int) -> Expected:
        """Return the expected recovery at one ε of the fixed lattice, which is computed on first
        use.

        Args:
            number: the number k of the point ε = 2^(k / STEPS_OF_AN_OCTAVE).
        """
        if number not in self.points:
            self.points[number] = self._compute(self.epsilon(number))
        return self.points[number]

    @staticmethod
    def epsilon(number: int) -> float:
        """Return the ε of a point of the lattice, 2^(number / STEPS_OF_AN_OCTAVE)."""
        return float(2.0 ** (number / STEPS_OF_AN_OCTAVE))

    @staticmethod
    def number(epsilon: float) -> int:
        """Return the number of the lattice point nearest to ε."""
        return round(STEPS_OF_AN_OCTAVE * math.log2(epsilon))

    def at(self, epsilon: float) -> Expected:
        """Return the expected recovery at any ε, interpolated between two lattice points in the
        logarithm of ε.
        """
        exact = min(max(math.log2(epsilon), -DOUBLINGS), DOUBLINGS) * STEPS_OF_AN_OCTAVE
        low = math.floor(exact)
        part = exact - low
        if not part:
            return self.point(low)
        below = self.point(low)
        above = self.point(low + 1)
        return Expected(
            epsilon,
            {band: _between(below.recovered[band], above.recovered[band], part) for band in BANDS},
            {band: _between(below.unchanged[band], above.unchanged[band], part) for band in BANDS},
            below.mass,
            {name: one.towards(above.told[name], part) for name, one in below.told.items()},
            below.in_context,
        )


class OutOfReachError(RequestError):
    """Error about a recovery level (share of words that an adversary recovers) that no ε reaches.

    Attributes:
        nearest: the recovery nearest to the level that the mechanism reaches.
    """

    def __init__(self, message: str, nearest: float) -> None:
        super().__init__(message)
        self.nearest = nearest


def epsilon_for(
    curve: Curve, target: float, band: str = ALL, measure: Measure | None = None, start: float = 1.0
) -> Calibrated:
    """Return the largest ε at which expected recovery is at most ``target``, by bisection; rounded
    down to three digits.

    Args:
        band: band of the words; ``all`` is the mean over all perturbed words, ``content`` the mean
            over all but function words.
        measure: share to which the target refers; by default the recovered share.
        start: ε near which the search begins; it affects only the time.

    Raises:
        OutOfReachError: if no ε gives the target, because an adversary recovers more without any
            output, or because the share stays below or above the target over the whole lattice.
    """
    value = measure or recovered
    of = "all words" if band == ALL else f"{band} words"
    if target <= curve.blind[band]:
        raise OutOfReachError(
            f"recovery {target:g} of {of}: a reader who sees no output already names "
            f"{curve.blind[band]:.3f} of them, "
            "by always guessing the most frequent word; ask for a higher level, or another band "
            f"({option('band')} rare)",
            curve.blind[band],
        )

    def holds(number: int) -> bool:
        return value(curve.point(number), band) <= target

    low, high = bracket(holds, curve.number(start))
    if high > LAST or low < -LAST:
        end, which, more = (LAST, "largest", "less") if high > LAST else (-LAST, "smallest", "more")
        nearest = value(curve.point(end), band)
        raise OutOfReachError(
            f"recovery {target:g} of {of}: even at the {which} epsilon, {curve.epsilon(end):g}, "
            f"a reader names {nearest:.3f} of them; ask for {more}",
            nearest,
        )
    below = value(curve.point(low), band)
    above = value(curve.point(high), band)
    epsilon = _rounded_down(
        2.0 ** ((low + (target - below) / (above - below)) / STEPS_OF_AN_OCTAVE)
    )
    return Calibrated(epsilon, curve.at(epsilon))


def bracket(holds: Callable[[int], bool], start: int) -> tuple[int, int]:
    """Return two neighbouring points of the lattice of ε: ``holds`` is true at the first and false
    at the second.

    The search doubles its steps, beginning at ``start``, then bisects. ``holds`` counts as true at
    points below the lattice, and as false at points above it.
    """
    low = high = max(-LAST, min(LAST, start))
    step = 1
    if holds(low):
        while (high := low + step) <= LAST and holds(high):
            low = high
            step = 2 * step
    else:
        while (low := high - step) >= -LAST and not holds(low):
            high = low
            step = 2 * step
    low = max(low, -LAST - 1)
    high = min(high, LAST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def recovered(expected: Expected, band: str) -> float:
    """Return the share of words that an adversary is expected to recover, in one frequency band or
    over all words.
    """
    return expected.overall(expected.recovered, band)


def unchanged(expected: Expected, band: str) -> float:
    """Return the expected share of words that the mechanism leaves unchanged, in one frequency band
    or over all words.
    """
    return expected.overall(expected.unchanged, band)


def given_back(expected: Expected, band: str) -> float:
    """Return the larger of two expected shares: recovered words and unchanged words. They differ,
    because an adversary may guess another word although the output is the true word, and the
    reverse.
    """
    return max(recovered(expected, band), unchanged(expected, band))


def without_output(prior: Floats, bands: Bytes) -> dict[str, float]:
    """Return the share of words that an adversary recovers without seeing any output, by frequency
    band and over all words. This adversary always guesses the most frequent word.
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
    digits = DIGITS_OF_EPSILON - 1 - math.floor(math.log10(epsilon))
    return round(math.floor(epsilon * 10.0**digits) / 10.0**digits, max(digits, 0))
