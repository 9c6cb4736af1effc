"""Formatting of numbers in the report. A table shows a dash for a missing value, never zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lexveil.base.levels import MISSING, NoiseSetting

NORMAL = 1.96  # half of a 95% interval, in standard errors
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class MeanSd:
    """A mean with its standard deviation and standard error. Tables store the mean as the raw
    value.

    Attributes:
        sd: standard deviation; None if there is none.
        error: standard error of the mean; None if it is unknown.
    """

    mean: float
    sd: float | None
    error: float | None = None

    def __str__(self) -> str:
        return str(self.mean)


@dataclass(frozen=True, slots=True)
class Interval:
    """A share or score with its 95% interval. Tables store the share or score as the raw value."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return str(self.share)

    @property
    def error(self) -> float:
        """Standard error of the share, computed from its interval."""
        return (self.high - self.low) / (2 * NORMAL)


def decimals(places: int) -> Callable[[float], str]:
    """Return a function that formats numbers with a fixed number of decimals, for example
    1,342.08.
    """
    return f"{{:,.{places}f}}".format


one, two, three = map(decimals, (1, 2, 3))


def mean_sd(places: int) -> Callable[[MeanSd], str]:
    """Return a function that formats a mean and its deviation as 0.411 ± 0.020 with a fixed number
    of decimals; without a deviation it shows the mean alone.
    """
    number = decimals(places)
    return lambda value: (
        number(value.mean) if value.sd is None else f"{number(value.mean)} ± {number(value.sd)}"
    )


def count(value: int) -> str:
    """Format a whole number as 12,345."""
    return f"{value:,}"


def amount(value: float) -> str:
    """Format a whole number as 12,345, and any other number with two decimals."""
    return two(value) if isinstance(value, float) else count(value)


def share(value: float) -> str:
    """Format a share as 12.3%. A share above 0 is never shown as 0.0%, and a share below 1 never as
    100.0%.
    """
    if 0 < value < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= value < 1 else f"{value:.1%}"


def percent(value: float) -> str:
    """Format a tick of a share axis as briefly as possible: 5%, 0.5%."""
    return f"{100 * value:g}%"


def interval(value: Interval) -> str:
    """Format a share and its interval in percent: 12.3% (11.8–12.9)."""
    return f"{share(value.share)} ({100 * value.low:.1f}–{100 * value.high:.1f})"


def bounded(value: Interval) -> str:
    """Format a score and its interval: 0.61 (0.57–0.65)."""
    return f"{two(value.share)} ({two(value.low)}–{two(value.high)})"


def epsilon(value: float) -> str:
    """Format an epsilon as briefly as possible: 0.5, 1, 50; a dash for 0."""
    return f"{value:g}" if value else MISSING


def noise(value: NoiseSetting) -> str:
    """Format the base epsilon of a run, as 0.5; or its recovery level and the epsilon calibrated
    for the level, as 20%, ε 8.11.
    """
    return value.text


def run_noise(value: NoiseSetting) -> str:
    """Format the base epsilon or recovery level of a run for the run's name: ε 0.5; or 20%, ε 8.11
    at a level.
    """
    return value.title


def epsilon_found(value: float) -> str:
    """Format a base epsilon that was computed (and not chosen by a person) with three digits."""
    return f"{value:.3g}"


def factor(log_value: float) -> str:
    """Format exp(log_value) as ×2.4, or as ×10¹³ if the digits would carry no information."""
    power = log_value / math.log(10)
    if power < 3:
        return f"×{math.exp(log_value):.{2 if power < 1 else 0}f}"
    return f"×10{str(round(power)).translate(_SUPERSCRIPT)}"


def short(value: float) -> str:
    """Format a tick of an axis: 0.2, 100, 10k, 2M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def listed(names: Sequence[str]) -> str:
    """Join names as a list in a sentence: a, b and c."""
    return (
        names[0]
        if len(names) == 1
        else f"{', '.join(names[:-1])} and {names[-1]}"
        if names
        else "none"
    )
