"""Line charts of the report, with error bars over linear or logarithmic axes.

This module computes the pixel positions; chart.html.j2 draws them. Series differ by colour, marker
and dash, so that a reader can tell them apart in grey.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lexveil.lab.report import epsilon_units, formatting
from lexveil.lab.report.formatting import Interval, MeanSd
from lexveil.lab.report.records import Key
from lexveil.lab.report.table import Column, Table

Ends = tuple[float, float]
Known = MeanSd | Interval | float  # a value of a run that a chart shows

# size of a chart in pixels; two charts stand side by side on a wide page
WIDTH = 430
HEIGHT = 262
# margins around the plot, in pixels
LEFT = 56
RIGHT = 14
TOP = 10
BOTTOM = 46
DODGE = 4.0  # pixels between the points of several series at the same value of a logarithmic axis
LABEL = 26.0  # smallest distance between two tick labels, in pixels
MARGIN = 1.25  # factor of free space at both ends of a logarithmic axis
INTERVALS = 5  # largest number of intervals between the ticks of a linear axis

STYLES = 7  # colours, markers and dashes are defined in page.css and chart.html.j2
PLACES = {"S1": 0, "S2": 1, "S3": 2, "S4": 3}  # each strategy has one style on all charts
CLEAN_TEXTS = "clean texts"


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One point of a line in a chart.

    Attributes:
        x_ends, y_ends: ends of the error bars; None for no bar.
        name: name of the point within its series, if the position of the point does not identify
            it.
        expected: value that the point estimates, drawn as a ring.
    """

    x: float
    y: float
    x_ends: Ends | None = None
    y_ends: Ends | None = None
    name: str = ""
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart, and the name of the line in the legend."""

    label: str
    points: Sequence[ChartPoint]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a chart.

    Attributes:
        label: label of the axis, with the unit in brackets.
        show: formats a value in the tooltip of a point.
        tick: formats a value at a tick.
        limits: smallest and largest value on the axis; None takes the smallest and largest value of
            the points, and includes 0 on a linear axis.
        ticks: values with a tick on a logarithmic axis; empty for powers of ten.
    """

    label: str
    show: Callable[[float], str] = formatting.short
    tick: Callable[[float], str] = formatting.short
    limits: Ends | None = None
    is_log: bool = False
    ticks: Sequence[float] = ()

    @property
    def what(self) -> str:
        """Label of the axis, without the unit."""
        return self.label.partition(" (")[0]

    def scale(self, values: Iterable[float], start: float, end: float) -> Scale:
        """Return the mapping from values on the axis to pixels between ``start`` and ``end``."""
        low, high = self.limits or (min(values, default=1.0), max(values, default=1.0))
        if not self.limits:
            low, high = (
                (low / MARGIN, high * MARGIN)
                if self.is_log
                else (min(low, 0.0), max(high, low + 1e-9, 0.0))
            )
        return Scale(self, low, high, start, end)


def share_axis(label: str) -> Axis:
    """Return a chart axis for shares from 0 to 1, shown in percent."""
    return Axis(label, formatting.share, formatting.percent, limits=(0, 1))


def score_axis(label: str, lowest: float = 0.0) -> Axis:
    """Return a chart axis for scores of at most 1."""
    return Axis(label, formatting.three, limits=(min(0.0, lowest), 1))


def epsilon_axis(label: str, epsilons: Iterable[float]) -> Axis:
    """Return a logarithmic chart axis with a tick at each of ``epsilons``."""
    ticks = sorted(set(epsilons))
    return Axis(label, formatting.epsilon, formatting.epsilon, is_log=True, ticks=ticks)


class Tick(NamedTuple):
    """One tick of an axis: its pixel position and its label."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Mapping from data values on an axis to pixel positions from ``start`` to ``end``."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Map a data value to its pixel position on the axis."""
        low, high, at = (
            math.log(one) if self.axis.is_log else one for one in (self.low, self.high, value)
        )
        return round(self.start + (at - low) / (high - low) * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[Tick]:
        """Ticks of the axis whose labels do not overlap; the first and the last tick always
        stay.
        """
        ticks = [Tick(self(value), self.axis.tick(value)) for value in self._values()]
        if not self.axis.is_log or len(ticks) < 3:
            return ticks
        first, *others, last = ticks
        shown_ticks = [first]
        for tick in others:
            if min(abs(tick.place - shown_ticks[-1].place), abs(tick.place - last.place)) >= LABEL:
                shown_ticks.append(tick)
        return [*shown_ticks, last]

    def _values(self) -> Sequence[float]:
        if not self.axis.is_log:
            width = self.high - self.low
            step = 10 ** math.floor(math.log10(width / INTERVALS))
            step *= next(times for times in (1, 2, 5, 10) if width / (step * times) <= INTERVALS)
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            return [round(step * number, 9) for number in range(first, last + 1)]
        powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
        return sorted(self.axis.ticks) or [10.0**power for power in powers]


class PlacedPoint(NamedTuple):
    """A point of a chart in pixels: its position, its relative size, its tooltip, the SVG path of
    its error bars, and the y coordinate of the ring around its expected value.
    """

    x: float
    y: float
    size: float
    title: str
    bars: str
    ring: float | None


class PlacedSeries(NamedTuple):
    """A line of a chart in pixels.

    Attributes:
        style: CSS class of the line.
        line: points of the line, as an SVG polyline.
    """

    label: str
    style: str
    line: str
    marks: list[PlacedPoint]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One figure of the report: lines over two axes.

    Attributes:
        name: word for ids and the CSV file, unique on the page.
        title: heading of the figure.
        across, down: reference values by name, drawn as horizontal and vertical lines; the legend
            names the horizontal lines only.
        clean: position of the clean texts, drawn as a star.
        is_path: whether markers grow along each line; a line then goes from the smallest epsilon to
            the largest.
        has_markers: whether the chart draws markers at the points, or only the line.
    """

    name: str
    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    across: Mapping[str, float] = field(default_factory=dict)
    down: Mapping[str, float] = field(default_factory=dict)
    clean: Ends | None = None
    is_path: bool = False
    has_markers: bool = True

    @cached_property
    def x_scale(self) -> Scale:
        """Mapping of the x axis to pixels, which rise from left to right."""
        return self.x.scale(
            [point.x for line in self.series for point in line.points], LEFT, WIDTH - RIGHT
        )

    @cached_property
    def y_scale(self) -> Scale:
        """Mapping of the y axis to pixels; values rise from the bottom to the top."""
        return self.y.scale(
            [point.y for line in self.series for point in line.points], HEIGHT - BOTTOM, TOP
        )

    @cached_property
    def drawn(self) -> list[PlacedSeries]:
        """The lines of the chart in pixels. On a logarithmic axis, points of several lines at one
        value stand side by side, so that no error bar hides another.
        """
        drawn = [self._placed(line, place) for place, line in enumerate(self.series)]
        if self.clean is not None:
            across, up = self.clean
            title = f"{CLEAN_TEXTS}: {self.y.what} {self.y.show(up)}"
            mark = PlacedPoint(self.x_scale(across), self.y_scale(up), 1, title, "", None)
            drawn.append(PlacedSeries(CLEAN_TEXTS, "star", "", [mark]))
        return drawn

    def _placed(self, line: Series, place: int) -> PlacedSeries:
        """Convert one line to pixels; ``place`` is its number on the chart."""
        has_bars = any(point.y_ends for point in line.points) and self.x.is_log
        shift = DODGE * (place - (len(self.series) - 1) / 2) if has_bars else 0.0
        marks = []
        for number, point in enumerate(line.points, 1):
            size = round(0.6 + 0.7 * number / len(line.points), 2) if self.is_path else 1
            marks.append(self._mark(line, point, shift, size))
        style = f"s{PLACES.get(line.label, place) % STYLES}"
        polyline = " ".join(f"{mark.x},{mark.y}" for mark in marks)
        return PlacedSeries(line.label, style, polyline, marks)

    def _mark(self, line: Series, point: ChartPoint, shift: float, size: float) -> PlacedPoint:
        """Convert one point to pixels, with its error bars."""
        x = self.x_scale
        y = self.y_scale
        left = round(x(point.x) + shift, 1)
        top = y(point.y)
        bars = ""
        if point.y_ends:
            bars += f"M{left} {y(point.y_ends[0])}V{y(point.y_ends[1])}"
        if point.x_ends:
            bars += f"M{x(point.x_ends[0])} {top}H{x(point.x_ends[1])}"
        ring = None if point.expected is None else y(point.expected)
        return PlacedPoint(left, top, size, self.said_of(line, point), bars, ring)

    def said_of(self, line: Series, point: ChartPoint) -> str:
        """Return the tooltip text of a point."""
        name = f"{line.label}, {point.name}" if point.name else line.label
        ends = "" if point.y_ends is None else f" ({'–'.join(map(self.y.show, point.y_ends))})"
        return (
            f"{name}: {self.y.what} {self.y.show(point.y)}{ends}, {self.x.what} "
            f"{self.x.show(point.x)}"
        )

    @property
    def description(self) -> str:
        """Text description of the chart, for people who cannot see it."""
        lines = [
            f"{line.label}: "
            + ", ".join(f"{self.y.show(one.y)} at {self.x.show(one.x)}" for one in line.points)
            + "."
            for line in self.series
        ]
        ends = {**self.across, **({CLEAN_TEXTS: self.clean[1]} if self.clean else {})}
        lines += [f"{label.capitalize()}: {self.y.show(value)}." for label, value in ends.items()]
        return f"{self.y.label} over {self.x.label}. {' '.join(lines)}"

    @cached_property
    def csv(self) -> Table:
        """The data of the chart as a table."""
        keys = [
            "series",
            "name",
            self.x.what,
            "x_low",
            "x_high",
            self.y.what,
            "low",
            "high",
            "expected",
        ]
        rows = [
            (
                line.label,
                one.name or None,
                one.x,
                *(one.x_ends or (None,) * 2),
                one.y,
                *(one.y_ends or (None,) * 2),
                one.expected,
            )
            for line in self.series
            for one in line.points
        ]
        columns = [Column(key, key) for key in keys]
        return Table(self.name, columns, [dict(zip(keys, row, strict=True)) for row in rows])


def lines(
    keys: Iterable[Key], label: Callable[[Key], str], point: Callable[[Key], ChartPoint]
) -> list[Series]:
    """Group runs into lines of a chart by ``label``, and sort the points of each line by rising
    epsilon, or by the share of a recovery level.
    """
    grouped: dict[str, list[Key]] = {}
    for key in keys:
        grouped.setdefault(label(key), []).append(key)
    return [
        Series(name, [point(key) for key in sorted(own, key=lambda key: key[2].number)])
        for name, own in grouped.items()
    ]


def middle(value: Known) -> float:
    """Return the central value at which a point is drawn: a mean, a share, or a plain number."""
    if isinstance(value, MeanSd):
        return value.mean
    return value.share if isinstance(value, Interval) else value


def bar(value: Known) -> Ends | None:
    """Return the ends of an error bar: the ends of an interval, or one standard error on each side
    of a mean. Return None if the error is unknown.
    """
    if isinstance(value, Interval):
        return value.low, value.high
    error = value.error if isinstance(value, MeanSd) else None
    return (middle(value) - error, middle(value) + error) if error else None


def over_epsilon(
    name: str,
    title: str,
    y: Axis,
    known: Mapping[Key, Known],
    mechanism: str,
    across: Mapping[str, float] | None = None,
) -> list[Chart]:
    """Make charts that show a score over the base epsilon of a mechanism, with one line per
    strategy. Return no chart if no run of the mechanism has a value.

    Args:
        known: the score of each run; runs of other mechanisms, clean texts and runs at recovery
            levels are skipped.
        across: reference values by name, drawn as horizontal lines.
    """
    keys = [key for key in known if key[0] == mechanism and not key[2].is_level]
    if not keys:
        return []
    x = epsilon_axis(
        f"base ε per word ({epsilon_units.unit(mechanism)}, log)", (key[2].number for key in keys)
    )
    series = lines(
        keys,
        lambda key: key[1],
        lambda key: ChartPoint(key[2].number, middle(known[key]), y_ends=bar(known[key])),
    )
    return [
        Chart(name=f"{name}-{mechanism}", title=title, x=x, y=y, series=series, across=across or {})
    ]


def tradeoff(
    name: str,
    title: str,
    axes: tuple[Axis, Axis],
    known: Mapping[Key, tuple[Known, Known]],
    label: Callable[[Key], str],
    clean: Ends,
    majority: tuple[float | None, float],
) -> Chart:
    """Make a chart of utility over leakage, with each line from the smallest epsilon to the
    largest; up and left is better.

    Args:
        axes, known: the x axis and the values on it (leakage), then the y axis and the values on it
            (utility).
        label: returns the name of the line to which a run belongs.
        clean: x and y of the clean texts.
        majority: x and y of the baseline that reads no text; x is None if there is no such value.
    """

    def point(key: Key) -> ChartPoint:
        across, up = known[key]
        return ChartPoint(middle(across), middle(up), bar(across), bar(up), key[2].title)

    return Chart(
        name=name,
        title=title,
        x=axes[0],
        y=axes[1],
        series=lines(known, label, point),
        clean=clean,
        is_path=True,
        across={"majority": majority[1]},
        down={} if majority[0] is None else {"majority": majority[0]},
    )
