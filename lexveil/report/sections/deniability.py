"""Plausible deniability: N_w and S_w of every mechanism over epsilon, in the manner of 1-Diffractor Figure 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.config import GridParams
from lexveil.report import epsilon_units, formatting
from lexveil.report.data import ReportData
from lexveil.report.figures import STYLES, add_legend, epsilon_axis, new_panel, side_by_side
from lexveil.report.panel import Panel, data
from lexveil.report.records import SEGMENTATIONS, MechanismDeniability
from lexveil.report.section import Section
from lexveil.report.svg import HEIGHT, INK, PAPER, WIDTH, drawing, tell, to_svg
from lexveil.report.table import Column, Table

QUARTILES = ("q25", "median", "q75")


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


def heading(measured: MechanismDeniability, strategies: Sequence[str]) -> str:
    """The segmentation, the strategies that use it, and its words: "gst (S2 and S3): 100 of 4,242 words"."""
    own = [name for name in strategies if SEGMENTATION_OF[name] == measured.segmentation]
    n_words, n_shared = len(measured.record["word_rows"]), measured.record["n_shared"]
    return f"{measured.segmentation} ({formatting.listed(own)}): {n_words:,} of {n_shared:,} words"


def spread_series(
    measured: Sequence[MechanismDeniability], segmentation: str, statistic: str, computed: str
) -> list[SpreadSeries]:
    """One line per mechanism, in the order given; an epsilon that was refused has no point.

    Args:
        statistic: the sampled one, "n_w" or "s_w".
        computed: its expectation, "n_w_exact" or "s_w_expected".
    """
    lines = []
    for record in measured:
        if record.segmentation != segmentation:
            continue
        rows = [row for row in record.rows if row[statistic] is not None]
        lines.append(
            SpreadSeries(
                record.mechanism,
                [row["epsilon"] for row in rows],
                [row[statistic]["mean"] for row in rows],
                [row[statistic]["q25"] for row in rows],
                [row[statistic]["q75"] for row in rows],
                [row[computed]["mean"] for row in rows if row[computed] is not None],
            )
        )
    return lines


def spread_data(name: str, label: str, x: str, y: str, series: Sequence[SpreadSeries]) -> Table:
    """The points of some lines with their lower and upper ends, and what they estimate where that is known."""
    rows = [
        (line.label, *point, line.exact[place] if line.exact else None)
        for line in series
        for place, point in enumerate(zip(line.x, line.y, line.low, line.high, strict=True))
    ]
    return data(name, [label, x, f"{y}_mean", f"{y}_q25", f"{y}_q75", f"{y}_computed"], rows)


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
    epsilons = sorted({x for line in series for x in line.x})
    description = f"{y_label}, one line per mechanism. " + " ".join(
        f"{line.label}: "
        + ", ".join(f"{y:.1f} at ε {formatting.epsilon(x)}" for x, y in zip(line.x, line.y, strict=True))
        + "."
        for line in series
        if line.x
    )
    columns = 2 if len(series) > 2 else max(len(series), 1)
    extra = 18 * (-(-len(series) // columns) - 1)  # pixels of the legend's further lines
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, f"ε of a word ({unit}, log)", y_label, top=40 + extra)
        epsilon_axis(axes, epsilons)
        shifts = side_by_side(len(series), epsilons, WIDTH * 0.82)
        for place, (line, shift) in enumerate(zip(series, shifts, strict=True)):
            colour, marker, dashes = STYLES[place % len(STYLES)]
            x = [epsilon * shift for epsilon in line.x]
            axes.vlines(x, line.low, line.high, color=colour, linewidth=3, alpha=0.45, clip_on=False, zorder=2)
            (drawn,) = axes.plot(
                x, line.y, color=colour, marker=marker, linestyle=dashes, linewidth=1.6, markersize=7,
                markeredgecolor=PAPER, markeredgewidth=0.8, label=line.label, clip_on=False, zorder=3,
            )  # fmt: skip
            tell(drawn, [f"{line.label}, ε {at:g}: {y:.4g}" for at, y in zip(line.x, line.y, strict=True)])
            if line.exact:
                axes.plot(
                    x, line.exact, color=INK, marker="o", linestyle="none", markersize=11, markerfacecolor="none",
                    markeredgewidth=1.1, clip_on=False, zorder=4,
                )  # fmt: skip
        axes.set_ylim(*y_limits)
        add_legend(axes, columns)
        return to_svg(figure, name, title, description)


def deniability_figures(
    measured: Sequence[MechanismDeniability], grid: GridParams, n_draws: int
) -> list[tuple[str, list[Panel]]]:
    """Two figures per segmentation, N_w and S_w over epsilon, with their heading."""
    unit = epsilon_units.shared_unit(grid.mechanisms)

    def drawn(segmentation: str, statistic: str, computed: str, title: str, what: str, y_label: str) -> Panel:
        name = f"{statistic.replace('_', '-')}-{segmentation}"
        series = spread_series(measured, segmentation, statistic, computed)
        svg = spread_over_epsilon(
            name, f"{segmentation}: {what}, over ε", y_label, series, unit=unit, y_limits=(0, n_draws)
        )
        return Panel(title, svg, spread_data(name, "mechanism", "epsilon", statistic, series))

    first = {record.segmentation: record for record in reversed(measured)}
    return [
        (
            heading(first[name], grid.strategies),
            [
                drawn(
                    name,
                    "n_w",
                    "n_w_exact",
                    "N_w: how often a word stays",
                    "how often a word comes out as itself",
                    f"N_w (draws of {n_draws:,})",
                ),
                drawn(
                    name,
                    "s_w",
                    "s_w_expected",
                    "S_w: how many words come out of one",
                    "how many words come out of one",
                    "S_w (different words)",
                ),
            ],
        )
        for name in SEGMENTATIONS
        if name in first
    ]


def deniability_table(measured: Sequence[MechanismDeniability], n_draws: int) -> Table:
    """N_w and S_w per mechanism, segmentation and epsilon: mean and quartiles over the words, and what is expected."""

    def of(row: Mapping[str, Any], statistic: str, names: Sequence[str]) -> list[float | None]:
        return [None if row[statistic] is None else row[statistic][name] for name in names]

    def columns(statistic: str, computed: str, head: str, group: str) -> list[Column]:
        return [
            Column(f"{statistic}_mean", "Mean", formatting.one, group),
            *(
                Column(f"{statistic}_{name}", shown, formatting.one, group)
                for name, shown in zip(QUARTILES, ("25%", "Median", "75%"), strict=True)
            ),
            Column(f"{computed}_mean", head, formatting.one, group),
        ]

    return Table(
        "deniability",
        f"N_w and S_w in {n_draws:,} draws of each word",
        [
            Column("mechanism", "Mechanism"),
            Column("segmentation", "Segmentation"),
            Column("epsilon", "ε", formatting.epsilon),
            *columns("n_w", "n_w_exact", "Exact", f"N_w, draws of {n_draws:,}"),
            *columns("s_w", "s_w_expected", "Expected", "S_w, words"),
            Column("epsilon_unit", "ε is in"),
        ],
        [
            (
                record.mechanism,
                record.segmentation,
                row["epsilon"],
                *of(row, "n_w", ("mean", *QUARTILES)),
                *of(row, "n_w_exact", ("mean",)),
                *of(row, "s_w", ("mean", *QUARTILES)),
                *of(row, "s_w_expected", ("mean",)),
                epsilon_units.unit(record.mechanism),
            )
            for record in measured
            for row in record.rows
        ],
        "Means and quartiles are over the words. Exact and expected are means too, computed from the law of the "
        "mechanism for the same words; mechanisms whose law has no closed form have none.",
    )


def refusals(measured: Sequence[MechanismDeniability]) -> list[tuple[str, str]]:
    """Which epsilons were refused, and what the mechanism says, once per mechanism and segmentation."""
    said = []
    for record in measured:
        refused = [row for row in record.rows if row["refused"] is not None]
        if refused:
            at = formatting.listed([formatting.epsilon(row["epsilon"]) for row in refused])
            said.append((f"{record.mechanism}, {record.segmentation}, ε {at}", str(refused[0]["refused"])))
    return said


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    grid, n_draws = report.params.grid, report.params.deniability.draws
    return {
        "n_draws": n_draws,
        "epsilon_in_words": epsilon_units.in_words(grid.mechanisms),
        "mixed_units": len({epsilon_units.unit(name) for name in grid.mechanisms}) > 1,
        "any_exact": any(row["n_w_exact"] is not None for record in report.deniability for row in record.rows),
        "deniability_figures": deniability_figures(report.deniability, grid, n_draws) if grid.base_epsilons else [],
        "deniability": deniability_table(report.deniability, n_draws),
        "refusals": refusals(report.deniability),
    }


SECTION = Section(
    name="deniability",
    title="Plausible deniability",
    heading="Plausible deniability",
    view=view,
    prose="""\
<p>Words of each vocabulary, drawn at random and the same for all mechanisms, were replaced {{ n_draws|count }} times each
at every ε. <strong>N<sub>w</sub></strong> is how often a word came out as itself,
<strong>S<sub>w</sub></strong> how many different words came out of it. A high N<sub>w</sub> and a low S<sub>w</sub> mean
little deniability: whoever reads a word can be all but sure that it stood there. A low N<sub>w</sub> and a high
S<sub>w</sub> mean that it may have been many another.</p>
<p>{{ epsilon_in_words }}{% if mixed_units %} Where units differ, the same ε is not the same promise: compare the curves,
not the numbers at one ε.{% endif %} Here a word gets ε itself; in a text it gets its part of the text's budget, which is
often more (“Mean ε of a token that gets noise”, below).</p>
<p>Markers are means over the words, bars reach from the lower to the upper quartile{% if any_exact %}, and a ring is the
mean computed from the law of the mechanism, where that has a closed form: a marker inside its ring agrees with
it{% endif %}. Mechanisms stand side by side at each ε.</p>
{% for heading, panels in deniability_figures %}
<h3>{{ heading }}</h3>
<div class="panels">
{% for one in panels %}{{ render_panel(one) }}{% endfor %}
</div>
{% endfor %}
{{ render_table(deniability) }}
{% if refusals %}
<p>Not drawn, because the mechanism refused ε:</p>
<ul>{% for which, why in refusals %}<li>{{ which }}: {{ why }}</li>{% endfor %}</ul>
{% endif %}
""",
)
