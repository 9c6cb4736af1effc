"""Utility and attack evaluation of rewritten text: tables, figures and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from lexveil.accounting.budgets import STRATEGIES
from lexveil.evaluation.metrics import METRICS
from lexveil.evaluation.metrics.attack import ADAPTIVE
from lexveil.evaluation.metrics.base import Score
from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.report import epsilon_units
from lexveil.report.data import ReportData
from lexveil.report.evaluation_tables import average_tables, dataset_tables
from lexveil.report.evaluation_values import CLEAN, MAJORITY, SCORES, EvaluatedRun, Values, at_epsilons, one_kind
from lexveil.report.figures import Series, over_epsilon, tradeoff
from lexveil.report.panel import Panel
from lexveil.report.section import Section
from lexveil.report.table import Column, Table


def strategy_series(of: Values, score: Score, mechanism: str) -> list[Series]:
    """One line per strategy over epsilon, with standard errors; a run of which nothing is known has no point."""
    lines = []
    for strategy in STRATEGIES:
        own = sorted(key for name, key in of if name == score.name and key[:2] == (mechanism, strategy))
        if own:
            points = [of[score.name, key] for key in own]
            lines.append(
                Series(
                    strategy,
                    [key[2] for key in own],
                    [point.mean for point in points],
                    [point.error for point in points],
                )
            )
    return lines


def tradeoff_series(of: Values, mechanism: str) -> list[Series]:
    """One line per strategy, its points by rising epsilon: utility over attack, with standard errors."""
    lines = []
    for strategy in STRATEGIES:
        own = sorted(
            key
            for name, key in of
            if name == UTILITY.name and key[:2] == (mechanism, strategy) and (ADAPTIVE.name, key) in of
        )
        if own:
            x, y = ([of[score.name, key] for key in own] for score in (ADAPTIVE, UTILITY))
            lines.append(
                Series(
                    strategy,
                    [mean.mean for mean in x],
                    [mean.mean for mean in y],
                    [mean.error for mean in y],
                    [mean.error for mean in x],
                )
            )
    return lines


def figure_data(name: str, of: Values, measures: Sequence[Score], mechanism: str) -> Table:
    """What a figure is drawn of: one row per run, and mean, deviation and standard error of each measure."""
    own = sorted({key for known, key in of if key[0] == mechanism and any(known == score.name for score in measures)})
    rows = []
    for key in (*own, CLEAN):
        found = [of.get((score.name, key)) for score in measures]
        if any(mean is not None for mean in found):
            numbers_of = [(None,) * 3 if mean is None else (mean.mean, mean.sd, mean.error) for mean in found]
            rows.append((*key, *(number for three in numbers_of for number in three)))
    columns = [Column(head, head) for head in ("mechanism", "strategy", "epsilon")]
    columns += [Column(f"{score.name}_{end}", end) for score in measures for end in ("mean", "sd", "standard_error")]
    return Table(name, name, columns, rows)


def evaluation_figures(place: int, dataset: str, of: Values, mechanism: str) -> list[Panel]:
    """What is known of one data set and mechanism: utility, attack and cosine over epsilon, and utility over attack.

    Args:
        place: of the data set, from 1, for ids.
    """
    panels, every = [], of
    of = at_epsilons(every)
    for figure in (figure for metric in METRICS for figure in metric.figures):
        series = strategy_series(of, figure.score, mechanism)
        if not series:
            continue
        anchors = (("clean texts", CLEAN), ("majority", MAJORITY))
        levels = {
            label: of[figure.score.name, key].mean
            for label, key in anchors
            if figure.levels and (figure.score.name, key) in of
        }
        lowest = min(0.0, *(y for line in series for y in line.y))
        name, title = f"{figure.name}-{place}-{mechanism}", f"{dataset}, {mechanism}: {figure.words} over ε"
        svg = over_epsilon(
            name,
            title,
            figure.y_label,
            series,
            unit=epsilon_units.unit(mechanism),
            y_limits=(lowest, 1),
            levels=levels,
        )
        panels.append(Panel(title, svg, figure_data(name, of, [figure.score], mechanism)))
    of = one_kind(every)
    lines = tradeoff_series(of, mechanism)
    ends = [[of.get((score.name, key)) for score in (ADAPTIVE, UTILITY)] for key in (CLEAN, MAJORITY)]
    if lines and all(mean is not None for end in ends for mean in end):
        clean, majority = ((x.mean, y.mean) for x, y in ends if x is not None and y is not None)
        title, own = f"{dataset}, {mechanism}: utility over attack", f"tradeoff-{place}-{mechanism}"
        svg = tradeoff(own, title, "adaptive attack (macro F1)", lines, clean=clean, levels=majority)
        panels.append(Panel(title, svg, figure_data(own, of, [ADAPTIVE, UTILITY], mechanism)))
    return panels


def evaluated_datasets(report: ReportData) -> list[tuple[str, list[Table], list[Panel]]]:
    """Tables and figures of every data set of which anything was measured, by its name."""
    shown = []
    for number, (dataset, of) in enumerate(report.values.items(), 1):
        tables = dataset_tables(number, dataset, report.clean, of, report.keys)
        panels = [
            panel
            for mechanism in report.params.grid.mechanisms
            for panel in evaluation_figures(number, dataset, of, mechanism)
        ]
        if tables:
            shown.append((dataset, tables, panels))
    return shown


def left_out(clean: EvaluatedRun) -> list[tuple[str, str]]:
    """What is not scored, and why."""
    return [
        (f"{dataset}, {metric.title}", str(entry["left_out"]))
        for dataset in clean.datasets
        for metric in METRICS
        if (entry := clean.record["datasets"][dataset].get(metric.name)) is not None and entry["left_out"] is not None
    ]


def not_measured(clean: EvaluatedRun) -> list[str]:
    """The metrics that no data set has an entry of."""
    return [
        metric.title
        for metric in METRICS
        if not any(metric.name in clean.record["datasets"][name] for name in clean.datasets)
    ]


def headline(runs: Sequence[EvaluatedRun]) -> dict[str, dict[str, dict[str, float]]]:
    """The numbers `dvc metrics diff` compares, by run and data set; what is left out is not there."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for run in runs:
        mechanism, strategy, epsilon = run.key
        by_dataset = found.setdefault(f"{mechanism}/{strategy}/{epsilon}", {})
        for dataset in run.datasets:
            scores = {score.headline: run.value(dataset, score) for score in SCORES if score.headline}
            by_dataset[dataset] = {name: value.mean for name, value in scores.items() if value is not None}
    return found


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    explanations = [metric.explanation for metric in METRICS if metric.explanation]
    return {
        "explanations": Markup("; ".join(explanations[:-1]) + f"; and {explanations[-1]}"),
        "average_tables": average_tables(report.clean, report.values, report.keys),
        "evaluated": evaluated_datasets(report),
        "left_out": left_out(report.clean),
        "not_measured": not_measured(report.clean),
        "any_gain": any(gain is not None for gain in report.gains.values()),
    }


def metrics(report: ReportData) -> Mapping[str, Any]:
    """What metrics.json has of the evaluation."""
    clean, runs = report.evaluated
    return {"evaluation": headline([clean, *runs])}


SECTION = Section(
    name="evaluation",
    title="Utility and attacks",
    heading="Utility and attacks",
    view=view,
    metrics=metrics,
    prose="""\
<p>What the texts are still good for, and what they still tell. A classifier ({{ params.evaluation.classifier }}) learns
from the train split of a data set and is scored on documents that it has not seen. <strong>Utility</strong>: it learns
the label from rewritten texts, and is asked about rewritten texts, and about clean ones. <strong>Attack</strong>: it
learns the attribute, the author for example; a static attacker learns from clean texts, an adaptive one from texts that
were rewritten with the same settings, and both are asked about rewritten texts. High utility and a weak attack are what
is sought. Majority is the score of who always says the most frequent class and looks at no text.</p>
<p>An attack that fails is no proof: another attacker may do better, and only a guarantee holds against all of them.
Scores are means over {{ params.evaluation.shuffles|count }}
{{ "training" if params.evaluation.shuffles == 1 else "trainings" }} on {{ params.evaluation.train_share|share }} of the
train split{{ ", chosen and ordered anew for each; ± is their standard deviation" if params.evaluation.shuffles > 1 }}.</p>
<p>Beside that: {{ explanations }}.</p>
{% if any_gain %}
<p>Relative gain is U<sub>p</sub>/U<sub>o</sub> − P<sub>p</sub>/P<sub>o</sub>: the share of the utility that is left less
the share of the adaptive attack that is left, against clean texts. Above 0 the attack lost more than the task.</p>
{% endif %}
{% if evaluated %}
<p>In the plots bars are standard errors, of a score both from its trainings and from the number of documents asked about.
In plots of utility over attack each line goes from the smallest ε (small marker) to the largest; the star stands for the
clean texts, dotted lines for the majority. Towards the upper left the task gains and the attacker loses.</p>
{% endif %}
{% for table in average_tables %}{{ render_table(table) }}{% endfor %}
{% for dataset, tables, panels in evaluated %}
<details class="dataset"{{ " open" if evaluated|length <= 2 }}>
<summary><h3>{{ dataset }}</h3> <span>{{ tables|length }} {{ "table" if tables|length == 1 else "tables" }}, {{ panels|length }} {{ "plot" if panels|length == 1 else "plots" }}</span></summary>
{% for table in tables %}{{ render_table(table) }}{% endfor %}
{% if panels %}
<div class="panels">
{% for one in panels %}{{ render_panel(one) }}{% endfor %}
</div>
{% endif %}
</details>
{% endfor %}
{% if left_out %}
<p>Left out:</p>
<ul>{% for which, why in left_out %}<li>{{ which }}: {{ why }}</li>{% endfor %}</ul>
{% endif %}
{% if not_measured %}
<p>Not measured in these runs: {{ not_measured|listed }}.</p>
{% endif %}
""",
)
