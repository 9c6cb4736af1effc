"""How numbers are written for people. A value that does not exist is written as a dash, never as zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lexveil.levels import Level

MISSING = "–"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class MeanSd:
    """A mean and the standard deviation around it. As raw text it is its mean.

    Attributes:
        sd: None if there is none.
        error: standard error of the mean, None if it is not known.
    """

    mean: float
    sd: float | None
    error: float | None = None

    def __str__(self) -> str:
        return str(self.mean)


@dataclass(frozen=True, slots=True)
class Interval:
    """A share, or a score, with its 95% interval. As raw text it is the share."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return str(self.share)


def plain(value: Any) -> str:
    """Text as it is."""
    return MISSING if value is None else str(value)


def count(value: int | None) -> str:
    """12,345."""
    return MISSING if value is None else f"{value:,}"


def amount(value: float | None) -> str:
    """A whole number as 12,345, any other with two decimals."""
    return two(value) if isinstance(value, float) else count(value)


def share(value: float | None) -> str:
    """A part of 1 as 12.3%; what is more than nothing never reads as 0.0%, nor less than all as 100.0%."""
    if value is None:
        return MISSING
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{value:.1%}"


def interval(value: Interval | None) -> str:
    """12.3% (11.8–12.9), the ends of the interval in percent too."""
    if value is None:
        return MISSING
    return f"{share(value.share)} ({100 * value.low:.1f}–{100 * value.high:.1f})"


def bounded(value: Interval | None) -> str:
    """0.61 (0.57–0.65): a score with its interval."""
    return MISSING if value is None else f"{two(value.share)} ({two(value.low)}–{two(value.high)})"


def one(value: float | None) -> str:
    """One decimal: 1,342.1."""
    return MISSING if value is None else f"{value:,.1f}"


def two(value: float | None) -> str:
    """Two decimals: 1,342.08."""
    return MISSING if value is None else f"{value:,.2f}"


def three(value: float | None) -> str:
    """Three decimals: 0.411."""
    return MISSING if value is None else f"{value:,.3f}"


def mean_sd(value: MeanSd | None) -> str:
    """0.411 ± 0.020, both with three decimals; without a deviation the mean alone."""
    if value is None:
        return MISSING
    return three(value.mean) if value.sd is None else f"{three(value.mean)} ± {three(value.sd)}"


def mean_sd_one(value: MeanSd | None) -> str:
    """1,342.1 ± 20.5, both with one decimal; without a deviation the mean alone."""
    if value is None:
        return MISSING
    return one(value.mean) if value.sd is None else f"{one(value.mean)} ± {one(value.sd)}"


def epsilon(value: float | None) -> str:
    """A base epsilon, as short as it can be: 0.5, 1, 50; none for the clean baseline.

    Of a run at a level of recovery both: 20%, ε 8.11.
    """
    if isinstance(value, Level):
        return level(value) if value.epsilon is None else f"{level(value)}, ε {epsilon_found(value.epsilon)}"
    return MISSING if not value else f"{value:g}"


def run_epsilon(value: float) -> str:
    """What a run of a mechanism and strategy is called: ε 0.5; or 20%, ε 8.11."""
    return epsilon(value) if isinstance(value, Level) else f"ε {epsilon(value)}"


def level(value: float | None) -> str:
    """A level of recovery, as short as it can be: 5%, 0.5%."""
    return MISSING if value is None else f"{100 * float(value):g}%"


def epsilon_found(value: float | None) -> str:
    """A base epsilon that was found and not chosen, with three digits."""
    return MISSING if value is None else f"{value:.3g}"


def factor(log_value: float | None) -> str:
    """Write exp(log_value) as ×2.4, or as ×10¹³ where the digits would say nothing."""
    if log_value is None:
        return MISSING
    power = log_value / math.log(10)
    if power < 3:
        return f"×{math.exp(log_value):.{2 if power < 1 else 0}f}"
    return f"×10{str(round(power)).translate(_SUPERSCRIPT)}"


def short(value: float) -> str:
    """A tick of a logarithmic axis: 1, 100, 10k, 2M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def listed(names: list[str]) -> str:
    """Join names as a sentence does: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"
