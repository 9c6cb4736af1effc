"""The figures of the report. Lines differ by marker and dash, bars by hatch: they can be told apart in grey."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

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


@dataclass(frozen=True, slots=True)
class SpreadSeries:
    """One line with a spread: n points, each with what lies below and above it.

    Attributes:
        low, high: (n,) lower and upper end of the spread.
        exact: (n,) what the points estimate; empty where it is not known.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    exact: Sequence[float]


def over_epsilon(
    name: str,
    title: str,
    y_label: str,
    series: Sequence[Series],
    *,
    unit: str,
    y_limits: tuple[float, float],
    percent: bool = False,
    levels: Mapping[str, float] | None = None,
) -> Markup:
    """One line per strategy over the base epsilon, on a logarithmic axis with a tick at every epsilon of the grid.

    Points with error bars stand side by side, so that no bar hides another.

    Args:
        levels: at most two values to compare with, by name, drawn as lines across.
    """
    epsilons = sorted({x for one in series for x in one.x})
    description = f"{y_label}, one line per strategy. " + " ".join(
        f"{one.label}: " + ", ".join(f"{y:.1%}" if percent else f"{y:.3f}" for y in one.y) + "." for one in series
    )
    if epsilons:
        description += f" At base ε {', '.join(map(formatting.epsilon, epsilons))}."
    description += "".join(f" {label.capitalize()}: {y:.3f}." for label, y in (levels or {}).items())
    extra = 18 if levels else 0  # pixels of the legend's second line
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, f"base ε per word ({unit}, log)", y_label, top=40 + extra)
        epsilon_axis(axes, epsilons)
        has_bars = any(one.y_error for one in series)
        shifts = side_by_side(len(series) if has_bars else 1, epsilons, WIDTH * 0.82)
        for place, one in enumerate(series):
            colour, marker, dashes = STYLES[_PLACES.get(one.label, place) % len(STYLES)]
            shift = shifts[place % len(shifts)]
            x = [epsilon * shift for epsilon in one.x]
            _bars(axes, x, one, colour)
            axes.plot(
                x, one.y, color=colour, marker=marker, linestyle=dashes, linewidth=2, markersize=7,
                markeredgecolor=PAPER, markeredgewidth=0.8, label=one.label, clip_on=False, zorder=3,
            )  # fmt: skip
        for dashes, (label, y) in zip(_LEVELS, (levels or {}).items(), strict=False):
            axes.axhline(y, color=DIM, linestyle=dashes, linewidth=1.4, label=label, zorder=1)
        axes.set_ylim(*y_limits)
        if percent:
            axes.yaxis.set_major_formatter(FuncFormatter(_percent))
        add_legend(axes, len(series), first=len(series))
        return to_svg(figure, name, title, description)


def spread_over_epsilon(
    name: str,
    title: str,
    y_label: str,
    series: Sequence[SpreadSeries],
    *,
    unit: str,
    y_limits: tuple[float, float],
) -> Markup:
    """One line per mechanism over epsilon, a bar for the spread of each point, a ring around what it estimates.

    Points of the same epsilon stand side by side, in the order of ``series``, so that no bar hides another.
    """
    epsilons = sorted({x for one in series for x in one.x})
    description = f"{y_label}, one line per mechanism. " + " ".join(
        f"{one.label}: "
        + ", ".join(f"{y:.1f} at ε {formatting.epsilon(x)}" for x, y in zip(one.x, one.y, strict=True))
        + "."
        for one in series
        if one.x
    )
    columns = 2 if len(series) > 2 else max(len(series), 1)
    extra = 18 * (-(-len(series) // columns) - 1)  # pixels of the legend's further lines
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, f"ε of a word ({unit}, log)", y_label, top=40 + extra)
        epsilon_axis(axes, epsilons)
        shifts = side_by_side(len(series), epsilons, WIDTH * 0.82)
        for place, (one, shift) in enumerate(zip(series, shifts, strict=True)):
            colour, marker, dashes = STYLES[place % len(STYLES)]
            x = [epsilon * shift for epsilon in one.x]
            axes.vlines(x, one.low, one.high, color=colour, linewidth=3, alpha=0.45, clip_on=False, zorder=2)
            axes.plot(
                x, one.y, color=colour, marker=marker, linestyle=dashes, linewidth=1.6, markersize=7,
                markeredgecolor=PAPER, markeredgewidth=0.8, label=one.label, clip_on=False, zorder=3,
            )  # fmt: skip
            if one.exact:
                axes.plot(
                    x, one.exact, color=INK, marker="o", linestyle="none", markersize=11, markerfacecolor="none",
                    markeredgewidth=1.1, clip_on=False, zorder=4,
                )  # fmt: skip
        axes.set_ylim(*y_limits)
        add_legend(axes, columns)
        return to_svg(figure, name, title, description)


def tradeoff(
    name: str,
    title: str,
    series: Sequence[Series],
    *,
    clean: tuple[float, float],
    majority: tuple[float, float],
) -> Markup:
    """Utility over attack, one line per strategy by rising epsilon: up is better for the task, left for the people.

    Args:
        series: points by rising epsilon, drawn larger and larger.
        clean: where the clean texts stand.
        majority: attack and utility of who looks at no text, drawn as lines.
    """
    description = (
        "Utility over attack (macro F1), one line per strategy, from the smallest epsilon to the largest. "
        + " ".join(
            f"{one.label}: "
            + ", ".join(f"utility {y:.3f} at attack {x:.3f}" for x, y in zip(one.x, one.y, strict=True))
            + "."
            for one in series
        )
        + f" Clean texts: utility {clean[1]:.3f} at attack {clean[0]:.3f}."
    )
    with drawing(name) as figure:
        axes = new_panel(figure, "adaptive attack (macro F1)", "utility on rewritten texts (macro F1)")
        axes.axvline(majority[0], color=DIM, linestyle=":", linewidth=1.2, zorder=1)
        axes.axhline(majority[1], color=DIM, linestyle=":", linewidth=1.2, zorder=1)
        for place, one in enumerate(series):
            colour, marker, dashes = STYLES[_PLACES.get(one.label, place) % len(STYLES)]
            _bars(axes, one.x, one, colour)
            axes.plot(one.x, one.y, color=colour, linestyle=dashes, linewidth=1.4, clip_on=False, zorder=2)
            for step, at in enumerate(zip(one.x, one.y, strict=True)):
                axes.plot(
                    *at, color=colour, marker=marker, linestyle="none", markersize=4.5 + 5 * (step + 1) / len(one.x),
                    markeredgecolor=PAPER, markeredgewidth=0.8, clip_on=False, zorder=3,
                )  # fmt: skip
            axes.plot([], [], color=colour, marker=marker, linestyle=dashes, linewidth=1.4, label=one.label)
        axes.plot(
            *clean, color=INK, marker="*", linestyle="none", markersize=13, label="clean", clip_on=False, zorder=4
        )
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        add_legend(axes, len(series) + 1)
        return to_svg(figure, name, title, description)


def _bars(axes: Axes, x: Sequence[float], one: Series, colour: str) -> None:
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


def outcomes(name: str, title: str, rows: Mapping[str, Mapping[str, float]]) -> Markup:
    """One horizontal bar per label, made of shares that add up to 1; the shares of all labels have the same names."""
    kinds = list(next(iter(rows.values()))) if rows else []
    hatches = [("", BLUE), ("////", GREEN), ("", DIM), ("xxx", ORANGE)]
    description = " ".join(
        f"{label}: " + ", ".join(f"{kind} {value:.1%}" for kind, value in shares.items()) + "."
        for label, shares in rows.items()
    )
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (96 + 34 * len(rows)) / 72)
        longest = max(map(len, rows), default=0)
        axes = new_panel(
            figure, "share of the tokens of all texts (%)", "strategy", top=34, left=max(62, 30 + 8 * longest)
        )
        left = dict.fromkeys(rows, 0.0)
        shown = [
            (kind, *style)
            for kind, style in zip(kinds, hatches, strict=True)
            if any(one[kind] for one in rows.values())
        ]
        for kind, hatch, colour in shown:
            axes.barh(
                list(rows), [shares[kind] for shares in rows.values()], left=list(left.values()), height=0.62,
                color=colour, hatch=hatch, label=kind, edgecolor=PAPER, linewidth=0.8,
            )  # fmt: skip
            left = {label: left[label] + rows[label][kind] for label in rows}
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(FuncFormatter(_percent))
        add_legend(axes, len(shown))
        return to_svg(figure, name, title, description)


def pmi_histogram(name: str, title: str, series: Sequence[Series], bin_bits: float) -> Markup:
    """Numbers of collocations by PMI. ``x`` of a series is the lower edge of each of its bins, in bits."""
    description = " ".join(
        f"{one.label}: {sum(one.y):,} collocations"
        + (f", most of them around {one.x[max(range(len(one.y)), key=lambda i: one.y[i])]:g} bits." if one.y else ".")
        for one in series
    )
    with drawing(name) as figure:
        axes = new_panel(figure, "PMI (bits)", f"collocations per {bin_bits:g} bits")
        for place, one in enumerate(series):
            colour, _, dashes = STYLES[place % len(STYLES)]
            heights = dict(zip(one.x, one.y, strict=True))
            if heights:
                n_bins = round((one.x[-1] - one.x[0]) / bin_bits) + 1
                edges = [one.x[0] + bin_bits * i for i in range(n_bins + 1)]
                axes.stairs(
                    [heights.get(edge, 0) for edge in edges[:-1]], edges, color=colour, linestyle=dashes, linewidth=2,
                    label=one.label, zorder=3,
                )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formatting.short(value)))
        add_legend(axes, len(series))
        return to_svg(figure, name, title, description)


def token_lengths(name: str, title: str, shares: Mapping[str, Sequence[float]]) -> Markup:
    """Share of the tokens of 1, 2 and 3 words, one group of bars per length and one bar per segmentation."""
    lengths = ["1 word", "2 words", "3 words"]
    hatches = ["", "////", "..."]
    description = " ".join(
        f"{label}: " + ", ".join(f"{length} {value:.1%}" for length, value in zip(lengths, values, strict=True)) + "."
        for label, values in shares.items()
    )
    width = 0.84 / max(len(shares), 1)
    with drawing(name) as figure:
        axes = new_panel(figure, "words in a token", "share of the corpus's tokens (%)")
        for place, (label, values) in enumerate(shares.items()):
            at = [i - 0.42 + width * (place + 0.5) for i in range(len(lengths))]
            bars = axes.bar(
                at, values, width=width * 0.92, color=STYLES[place][0], hatch=hatches[place], label=label,
                edgecolor=PAPER, linewidth=0.8, zorder=3,
            )  # fmt: skip
            axes.bar_label(bars, [_bar_label(value) for value in values], fontsize=10, padding=2)
        axes.set_xticks(range(len(lengths)), lengths)
        axes.set_ylim(0, 1.1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.grid(visible=False, axis="x")
        axes.yaxis.set_major_formatter(FuncFormatter(_percent))
        add_legend(axes, len(shares))
        return to_svg(figure, name, title, description)


def word_ranks(name: str, title: str, ranks: Series) -> Markup:
    """How often the word of each rank occurs, on two logarithmic axes."""
    description = "A falling line: " + ", ".join(
        f"rank {rank:,} occurs {n:,} times"
        for rank, n in zip(ranks.x, ranks.y, strict=True)
        if math.log10(rank) % 1 == 0
    )
    with drawing(name) as figure:
        axes = new_panel(figure, "rank of the word (log)", "occurrences in the corpus (log)", top=12)
        axes.plot(ranks.x, ranks.y, color=BLUE, linewidth=2, zorder=3)
        for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
            scale("log")
            axis.set_major_locator(LogLocator(numticks=10))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: formatting.short(value)))
        return to_svg(figure, name, title, description + ".")


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


def add_legend(axes: Axes, columns: int, first: int | None = None) -> None:
    """Name above the axes what is drawn.

    Args:
        columns: entries side by side.
        first: how many of them come first; the others get a line of their own below. None: they are all alike.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    height = figure.get_size_inches()[1] * 72
    handles, _ = axes.get_legend_handles_labels()
    lines = [some for some in (handles[:first], handles[first:] if first is not None else []) if some]
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


def _bar_label(value: float) -> str:
    if not value:
        return ""
    return f"{value:.0%}" if value >= 0.0995 else f"{value:.1%}"


def _percent(value: float, _: int | None = None) -> str:
    return f"{100 * value:g}"
