"""The figures of the report. Lines differ by marker and dash, bars by hatch: they can be told apart in grey."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullLocator

from lexveil.report import formatting
from lexveil.report.svg import (
    BLUE,
    BROWN,
    DIM,
    GREEN,
    HEIGHT,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
    RED,
    SLATE,
    WIDTH,
    drawing,
    tell,
    to_svg,
)

# (colour, marker, dashes) by place in the legend
STYLES = [
    (BLUE, "o", "-"),
    (ORANGE, "s", (0, (6, 2))),
    (GREEN, "^", (0, (6, 2, 1.5, 2))),
    (PURPLE, "D", (0, (1.5, 1.5))),
    (BROWN, "v", (0, (10, 2.5))),
    (SLATE, "P", (0, (6, 2, 1.5, 2, 1.5, 2))),
    (RED, "X", (0, (3, 1))),
]

# What is drawn alike wherever it is drawn, also where another strategy has no points.
_PLACES = {"S1": 0, "S2": 1, "S3": 2, "S4": 3}
_LEVELS = ("-", ":")  # of lines across, by place

SHORT = 4  # letters of names that all have room in one line of the legend
LEGEND = 48  # letters that the names of a line of the legend have room for, beside their marks
MARGIN = 1.25  # factor left free at both ends of an axis of epsilons


@dataclass(frozen=True, slots=True)
class Series:
    """One line: n points and its name in the legend.

    Attributes:
        y_error, x_error: (n,) half the length of the bar at each point, None where there is none; empty for no bars.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    y_error: Sequence[float | None] = ()
    x_error: Sequence[float | None] = ()


def over_epsilon(
    name: str,
    title: str,
    y_label: str,
    series: Sequence[Series],
    *,
    unit: str,
    y_limits: tuple[float, float],
    levels: Mapping[str, float] | None = None,
) -> Markup:
    """One line per strategy over the base epsilon, on a logarithmic axis with a tick at every epsilon of the grid.

    Points with error bars stand side by side, so that no bar hides another.

    Args:
        y_label: with the unit; shares are written in percent where it is %.
        levels: at most two values to compare with, by name, drawn as lines across.
    """
    epsilons = sorted({x for line in series for x in line.x})
    percent = "%" in y_label
    description = f"{y_label}, one line per strategy. " + " ".join(
        f"{line.label}: " + ", ".join(f"{y:.1%}" if percent else f"{y:.3f}" for y in line.y) + "." for line in series
    )
    if epsilons:
        description += f" At base ε {', '.join(map(formatting.epsilon, epsilons))}."
    description += "".join(f" {label.capitalize()}: {y:.3f}." for label, y in (levels or {}).items())
    extra = 18 if levels else 0  # pixels of the legend's second line
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, f"base ε per word ({unit}, log)", y_label, top=40 + extra)
        epsilon_axis(axes, epsilons)
        has_bars = any(line.y_error for line in series)
        shifts = side_by_side(len(series) if has_bars else 1, epsilons, WIDTH * 0.82)
        for place, line in enumerate(series):
            colour, marker, dashes = STYLES[place_of(line.label, place) % len(STYLES)]
            shift = shifts[place % len(shifts)]
            x = [epsilon * shift for epsilon in line.x]
            draw_bars(axes, x, line, colour)
            (drawn,) = axes.plot(
                x, line.y, color=colour, marker=marker, linestyle=dashes, linewidth=2, markersize=7,
                markeredgecolor=PAPER, markeredgewidth=0.8, label=line.label, clip_on=False, zorder=3,
            )  # fmt: skip
            shown = (f"{y:.1%}" if percent else f"{y:.3f}" for y in line.y)
            tell(drawn, [f"{line.label}, base ε {at:g}: {y}" for at, y in zip(line.x, shown, strict=True)])
        for dashes, (label, y) in zip(_LEVELS, (levels or {}).items(), strict=False):
            axes.axhline(y, color=DIM, linestyle=dashes, linewidth=1.4, label=label, zorder=1)
        axes.set_ylim(*y_limits)
        if percent:
            axes.yaxis.set_major_formatter(FuncFormatter(percent_tick))
        add_legend(axes, len(series), [len(series)])
        return to_svg(figure, name, title, description)


def tradeoff(
    name: str,
    title: str,
    x_label: str,
    series: Sequence[Series],
    *,
    clean: tuple[float, float],
    levels: tuple[float, float],
) -> Markup:
    """Utility over what a reader gets, one line per strategy by rising epsilon.

    Up is better for the task, left for the people.

    Args:
        x_label: what the reader gets, from 0 to 1.
        series: points by rising epsilon, drawn larger and larger.
        clean: where the clean texts stand.
        levels: what of both is had without reading the texts, drawn as lines.
    """
    what = x_label.partition(" (")[0].split()[-1]
    description = (
        f"Utility (macro F1) over {x_label}, one line per strategy, from the smallest epsilon to the largest. "
        + " ".join(
            f"{line.label}: "
            + ", ".join(f"utility {y:.3f} at {what} {x:.3f}" for x, y in zip(line.x, line.y, strict=True))
            + "."
            for line in series
        )
        + f" Clean texts: utility {clean[1]:.3f} at {what} {clean[0]:.3f}."
    )
    longest = max(len(line.label) for line in series)
    columns = len(series) + 1 if longest <= SHORT else max(1, min(3, LEGEND // longest))
    extra = 18 * (-(-(len(series) + 1) // columns) - 1)  # pixels of further lines of the legend
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, x_label, "utility on rewritten texts (macro F1)", top=40 + extra)
        axes.axvline(levels[0], color=DIM, linestyle=":", linewidth=1.2, zorder=1)
        axes.axhline(levels[1], color=DIM, linestyle=":", linewidth=1.2, zorder=1)
        for place, line in enumerate(series):
            colour, marker, dashes = STYLES[place_of(line.label, place) % len(STYLES)]
            draw_bars(axes, line.x, line, colour)
            axes.plot(line.x, line.y, color=colour, linestyle=dashes, linewidth=1.4, clip_on=False, zorder=2)
            for step, at in enumerate(zip(line.x, line.y, strict=True)):
                axes.plot(
                    *at, color=colour, marker=marker, linestyle="none", markersize=4.5 + 5 * (step + 1) / len(line.x),
                    markeredgecolor=PAPER, markeredgewidth=0.8, clip_on=False, zorder=3,
                )  # fmt: skip
            axes.plot([], [], color=colour, marker=marker, linestyle=dashes, linewidth=1.4, label=line.label)
        axes.plot(
            *clean, color=INK, marker="*", linestyle="none", markersize=13, label="clean", clip_on=False, zorder=4
        )
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        add_legend(axes, columns, [*range(columns, len(series) + 1, columns)])
        return to_svg(figure, name, title, description)


def at_levels(
    name: str,
    title: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    *,
    levels: Sequence[float],
    anchors: Mapping[str, float],
) -> Markup:
    """One line per series over a few levels, which stand at equal distances; points stand side by side with their bars.

    Args:
        series: x are some of ``levels``.
        levels: rising shares, shown in percent.
        anchors: at most two values to compare with, by name, drawn as lines across.
    """
    description = f"{y_label} where {x_label.partition(' (')[0]} is the same. " + " ".join(
        f"{line.label}: " + ", ".join(f"{y:.3f} at {x:.0%}" for x, y in zip(line.x, line.y, strict=True)) + "."
        for line in series
    )
    description += "".join(f" {label.capitalize()}: {y:.3f}." for label, y in anchors.items())
    columns = max(1, min(3, LEGEND // max(len(line.label) for line in series)))
    lines = -(-len(series) // columns)
    extra = 18 * (lines - 1 + bool(anchors))  # pixels of further lines of the legend
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, x_label, y_label, top=40 + extra)
        step = 0.6 / max(len(series) - 1, 1)
        for place, line in enumerate(series):
            colour, marker, dashes = STYLES[place % len(STYLES)]
            shift = min(step, 0.12) * (place - (len(series) - 1) / 2)
            x = [levels.index(level) + shift for level in line.x]
            draw_bars(axes, x, line, colour)
            (drawn,) = axes.plot(
                x, line.y, color=colour, marker=marker, linestyle=dashes, linewidth=1.2, markersize=7,
                markeredgecolor=PAPER, markeredgewidth=0.8, label=line.label, clip_on=False, zorder=3,
            )  # fmt: skip
            tell(drawn, [f"{line.label}, {at:.0%}: {y:.3f}" for at, y in zip(line.x, line.y, strict=True)])
        for dashes, (label, y) in zip(_LEVELS, anchors.items(), strict=False):
            axes.axhline(y, color=DIM, linestyle=dashes, linewidth=1.4, label=label, zorder=1)
        axes.set_xlim(-0.5, len(levels) - 0.5)
        axes.xaxis.set_major_locator(FixedLocator(list(range(len(levels)))))
        axes.xaxis.set_major_formatter(FixedFormatter([f"{100 * level:g}" for level in levels]))
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, 1)
        add_legend(axes, columns, [*range(columns, len(series), columns), len(series)])
        return to_svg(figure, name, title, description)


def place_of(label: str, place: int) -> int:
    """The place in STYLES of what is always drawn alike; ``place`` for anything else."""
    return _PLACES.get(label, place)


def draw_bars(axes: Axes, x: Sequence[float], one: Series, colour: str) -> None:
    """Draw the error bars of a line whose points stand at ``x``; those without an error get none."""
    for at, y, error in zip(x, one.y, one.y_error, strict=False):
        if error:
            axes.vlines(at, y - error, y + error, color=colour, linewidth=2.2, alpha=0.45, zorder=2)
    for at, y, error in zip(x, one.y, one.x_error, strict=False):
        if error:
            axes.hlines(y, at - error, at + error, color=colour, linewidth=2.2, alpha=0.45, zorder=2)


def side_by_side(n: int, epsilons: Sequence[float], width: float, distance: float = 4.0) -> list[float]:
    """Factors that move n points of the same epsilon apart on a logarithmic axis of ``width`` pixels, around 1.

    Args:
        epsilons: rising; the points of two neighbours keep a third of the way between them free.
        distance: between two points, in pixels, where there is room.
    """
    if n < 2 or not epsilons:
        return [1.0] * n
    whole = math.log(epsilons[-1] / epsilons[0]) + 2 * math.log(MARGIN)
    step = distance * whole / width
    nearest = min((math.log(b / a) for a, b in itertools.pairwise(epsilons)), default=whole)
    step = min(step, nearest * 2 / 3 / (n - 1))
    return [math.exp(step * (place - (n - 1) / 2)) for place in range(n)]


def spaced(values: Sequence[float], width: float, distance: float = 26.0) -> list[float]:
    """Leave out values whose labels would touch on a logarithmic axis of ``width`` pixels; the first and last stay.

    Args:
        values: rising, all > 0.
        distance: smallest distance between two labels, in pixels.
    """
    if len(values) < 2:
        return list(values)
    per_unit = width / (math.log(values[-1]) - math.log(values[0]))
    kept = [values[0]]
    for value in values[1:-1]:
        if (math.log(value) - math.log(kept[-1])) * per_unit >= distance and (
            math.log(values[-1]) - math.log(value)
        ) * per_unit >= distance:
            kept.append(value)
    return [*kept, values[-1]]


def new_panel(figure: Figure, x_label: str, y_label: str, top: float = 40, left: float = 62) -> Axes:
    """Axes at a fixed place in pixels: a layout that measures text could differ from one machine to the next."""
    width, height = (inches * 72 for inches in figure.get_size_inches())
    right, bottom = 14, 50
    axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height)
    )
    axes.set_xlabel(x_label, labelpad=6)
    axes.set_ylabel(y_label)
    axes.yaxis.set_label_coords((16 - left) / (width - left - right), 0.5)
    axes.tick_params(length=4)
    return axes


def epsilon_axis(axes: Axes, epsilons: Sequence[float]) -> None:
    """Make x logarithmic, with a tick at every epsilon that has room for its label."""
    axes.set_xscale("log")
    if epsilons:
        axes.set_xlim(epsilons[0] / MARGIN, epsilons[-1] * MARGIN)
        ticks = spaced(epsilons, WIDTH * 0.82)
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(FixedFormatter([formatting.epsilon(tick) for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())


def add_legend(axes: Axes, columns: int, breaks: Sequence[int] = ()) -> None:
    """Name above the axes what is drawn.

    Args:
        columns: entries side by side.
        breaks: places of the entries with which a further line begins, below the others.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = figure.get_size_inches()[1] * 72
    handles, _ = axes.get_legend_handles_labels()
    ends = [0, *breaks, len(handles)]
    lines = [some for start, end in itertools.pairwise(ends) if (some := handles[start:end])]
    for line, some in enumerate(lines):
        if line:  # a further legend would take the place of the one before
            legend = axes.get_legend()
            assert legend is not None
            axes.add_artist(legend)
        axes.legend(
            handles=some, loc="upper left", bbox_to_anchor=(0.0, 1 - (4 + 18 * line) / height, 1, 0),
            bbox_transform=figure.transFigure, ncols=max(columns, 1), handlelength=2.6, columnspacing=1.6,
            handletextpad=0.6, borderaxespad=0, mode=None,
        )  # fmt: skip


def percent_tick(value: float, _: int | None = None) -> str:
    """A share as the tick of an axis in percent."""
    return f"{100 * value:g}"
