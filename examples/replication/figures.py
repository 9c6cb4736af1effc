"""Figures of the papers, drawn from measured values: one SVG file each.

CLMLDP Figure 2, 1-Diffractor Figures 2 to 7, TEM Figure 1, Vickrey Figures 2 and 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from examples.replication.efficiency import N_WORDS, Efficiency
from examples.replication.measured import LISTS
from lexveil.core.mechanisms.variants import base_of
from lexveil.lab.evaluation.metrics.attack import STATIC_ACCURACY
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.membership import MEMBERSHIP
from lexveil.lab.evaluation.metrics.utility import LOSS, ON_CLEAN_MICRO
from lexveil.lab.report import charts, formatting
from lexveil.lab.report.charts import Axis, Chart, ChartPoint, Series
from lexveil.lab.report.data import Record
from lexveil.lab.report.evaluation_values import MAJORITY, Values, averages, losses, of_score
from lexveil.lab.report.formatting import MeanSd
from lexveil.lab.report.page import environment
from lexveil.lab.report.records import Key

# chart.html.j2 leaves colours to the report's page; a separate file needs them inside.
STYLE = (
    "<style>text{font:11px sans-serif;fill:#333}.line{fill:none;stroke:var(--s);stroke-width:1.8}"
    ".marker{fill:var(--s)}.bar{stroke:var(--s);fill:none}.grid path,.axes,.across"
    "{fill:none;stroke:#bbb;stroke-width:.8}.s0{--s:#1f6fb2}.s1{--s:#c2571a}.s2{--s:#3d8b40}"
    ".s3{--s:#8c4fa8}.s4{--s:#a08000}.s5{--s:#b03060}.s6{--s:#444}.star{--s:#000}</style>"
)
TRIPLE = ("mrpc", "rte", "sst2")  # data sets averaged in 1-Diffractor Figure 3
LEGEND = 15  # data sets whose average is 1-Diffractor Figure 3


def svg(chart: Chart) -> str:
    """Return a chart as a complete SVG file, with its legend below it."""
    macros = environment().get_template("chart.html.j2").module
    page = str(macros.render_chart(chart))  # type: ignore[attr-defined]
    drawn = re.search(r'<svg viewBox="0 0 .*</svg>', page, flags=re.DOTALL)
    assert drawn is not None
    height = charts.HEIGHT + LEGEND * (len(chart.drawn) + 1)
    body = drawn.group().split(">", 1)[1]
    names = "".join(
        f'<g class="{line.style}"><path class="line" d="M60 {y - 4}h20"/>'
        f'<text x="86" y="{y}">{escape(line.label)}</text></g>'
        for y, line in zip(range(charts.HEIGHT + LEGEND, height, LEGEND), chart.drawn, strict=False)
    )
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {charts.WIDTH} {height}">'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return f"{opening}{STYLE}{background}{body.removesuffix('</svg>')}{names}</svg>\n"


def write_figures(drawn: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each chart into a folder."""
    folder.mkdir(exist_ok=True)
    files = []
    for chart in drawn:
        file = folder / f"{chart.name}.svg"
        file.write_text(svg(chart), encoding="utf-8")
        files.append(file)
    return files


def of_runs(values_of: Mapping[str, Values], paper: str) -> list[Chart]:
    """Return the figures of a paper that show scores over ε."""
    if paper == "CLMLDP":
        sets = [name for name in ("cola", "mrpc", "rte", "sst2") if name in values_of]
        loss = of_score(losses(averages(values_of, sets)), LOSS)
        own = {key: value for key, value in loss.items() if key[0] == "madlib"}
        title = "CLMLDP Figure 2: mean utility loss of MADLIB"
        return [_over_epsilon("clmldp-figure-2", title, "utility loss (micro F1)", own, by=1)]
    if paper == "TEM":
        found = []
        for letter, score, words in (
            ("a", ON_CLEAN_MICRO, "accuracy on clean texts"),
            ("b", MEMBERSHIP, "membership inference (AUC)"),
        ):
            known = _score(values_of, "imdb", score)
            title = f"TEM Figure 1{letter}: {words}"
            found.append(_over_epsilon(f"tem-figure-1{letter}", title, words, known))
        return found
    if paper == "1-Diffractor":
        return _diffractor(values_of)
    return []


def _diffractor(values_of: Mapping[str, Values]) -> list[Chart]:
    glue = [name for name in ("cola", "sst2", "mrpc", "rte") if name in values_of]
    loss = of_score(losses(averages(values_of, glue)), LOSS)
    lists = {key: value for key, value in loss.items() if base_of(key[0]) in LISTS}
    three = [name for name in TRIPLE if name in values_of]
    every = of_score(losses(averages(values_of, three)), LOSS)
    found = [
        _over_epsilon(
            "diffractor-figure-2",
            f"1-Diffractor Figure 2: mean utility loss, {', '.join(glue)}",
            "utility loss (accuracy)",
            lists,
        ),
        _over_epsilon(
            "diffractor-figure-3",
            f"1-Diffractor Figure 3: mean utility loss, {', '.join(three)}",
            "utility loss (accuracy)",
            every,
        ),
    ]
    for dataset in ("friends", "trustpilot"):
        if dataset in values_of:
            known = _score(values_of, dataset, STATIC_ACCURACY)
            own = {key: value for key, value in known.items() if base_of(key[0]) in LISTS}
            title = f"1-Diffractor Figure 5: static attacker, {dataset}"
            found.append(_over_epsilon(f"diffractor-figure-5-{dataset}", title, "accuracy", own))
    return found


def of_deniability(statistics: Sequence[Record]) -> list[Chart]:
    """Return 1-Diffractor Figure 4: N_w and S_w of each mechanism over ε."""
    found = []
    for name, words in (("n_w", "N_w (of 100 draws)"), ("s_w", "S_w (words)")):
        series = []
        for record in statistics:
            points = [
                ChartPoint(float(row["epsilon"]), row[name]["mean"] * _scale(name, row))
                for row in record["statistics"]
                if row[name] is not None
            ]
            if points:
                series.append(Series(record["mechanism"], points))
        title = f"1-Diffractor Figure 4: {words}"
        found.append(_chart(f"diffractor-figure-4-{name[0]}", title, words, series))
    return found


def _scale(name: str, row: Mapping[str, Any]) -> float:
    return 100 / row["n_draws"] if name == "n_w" else 1.0


def of_tradeoff(found: Mapping[str, Any]) -> list[Chart]:
    """Return Vickrey Figures 2 and 3: inference error over ε, and over utility loss."""
    drawn = []
    for figure, lines in found["figures"].items():
        number, _, dataset = figure.partition(" ")
        name = f"vickrey-figure-{number}{f'-{dataset}' if dataset else ''}"
        where = dataset or "opinion words"
        by_epsilon = [
            Series(label, [ChartPoint(epsilon, error) for epsilon, error, _, _ in points])
            for label, points in lines.items()
        ]
        title = f"Vickrey Figure {number}: inference error over ε, {where}"
        drawn.append(_chart(f"{name}-a", title, "inference error", by_epsilon))
        if not dataset:
            by_loss = [
                Series(label, [ChartPoint(loss, error) for _, error, loss, _ in points])
                for label, points in lines.items()
            ]
            title = f"Vickrey Figure {number}: inference error over utility loss, {where}"
            across = Axis("utility loss", formatting.three)
            up = charts.score_axis("inference error")
            drawn.append(Chart(name=f"{name}-b", title=title, x=across, y=up, series=by_loss))
    return drawn


def of_efficiency(measured: Sequence[Efficiency]) -> list[Chart]:
    """Return 1-Diffractor Figure 7: memory over words, by the memory per word."""
    n_words = (1.0, 1000.0, 2000.0, 5000.0)
    series = [
        Series(one.mechanism, [ChartPoint(n, one.mebibytes * n / N_WORDS) for n in n_words])
        for one in measured
    ]
    title = "1-Diffractor Figure 7: memory over words"
    axes = (Axis("words"), Axis("memory (MiB)"))
    return [Chart(name="diffractor-figure-7", title=title, x=axes[0], y=axes[1], series=series)]


def _score(values_of: Mapping[str, Values], dataset: str, score: Score) -> dict[Key, MeanSd]:
    known = of_score(values_of.get(dataset, {}), score)
    return {key: value for key, value in known.items() if key != MAJORITY and key[2].number > 0}


def _over_epsilon(
    name: str, title: str, y_label: str, known: Mapping[Key, MeanSd], by: int = 0
) -> Chart:
    """Return a chart with lines over ε, one for each mechanism (``by`` 0) or strategy (1)."""
    series = charts.lines(
        known,
        lambda key: str(key[by]),
        lambda key: ChartPoint(key[2].number, known[key].mean, y_ends=charts.bar(known[key])),
    )
    return _chart(name, title, y_label, series)


def _chart(name: str, title: str, y_label: str, series: Sequence[Series]) -> Chart:
    epsilons = {point.x for line in series for point in line.points}
    x = charts.epsilon_axis("ε (log)", epsilons)
    return Chart(name=name, title=title, x=x, y=Axis(y_label, formatting.three), series=series)
