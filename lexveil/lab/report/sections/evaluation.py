"""Report section "evaluation": a summary of each data set, and every score next to clean texts and
the majority-class baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics import BY_NAME, METRICS
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE, GAIN
from lexveil.lab.evaluation.metrics.base import PaperTable
from lexveil.lab.evaluation.metrics.utility import LOSS, UTILITY
from lexveil.lab.report import formatting
from lexveil.lab.report.charts import CLEAN_TEXTS, Chart, over_epsilon, score_axis, tradeoff
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.evaluation_values import (
    MAJORITY,
    SCORES,
    EvaluatedRun,
    Values,
    averages,
    is_learnt,
    losses,
    of_score,
    one_kind,
)
from lexveil.lab.report.formatting import NORMAL, three
from lexveil.lab.report.records import Key, RunRecovery
from lexveil.lab.report.table import RUN, Column, Table, epsilon_columns, epsilon_key, of_run
from lexveil.readers.bands import ALL

RECOVERED = {ALL: "Recovered", "rare": "Of rare words"}  # columns, by band
STAND_OUT = (
    ("highest utility", UTILITY, max),
    ("weakest adaptive attack", ADAPTIVE, min),
    ("highest relative gain", GAIN, max),
)
FORMS = tuple(form for metric in METRICS for form in metric.tables)
AVERAGED = (
    *(form for form in FORMS if form.averaged),
    PaperTable(
        "loss",
        "utility loss against clean texts, micro F1",
        (LOSS,),
        "CLMLDP and 1-Diffractor Figure 2",
    ),
)


def glance_table(
    values_of: Mapping[str, Values], grid: Sequence[Key], recovery: Sequence[RunRecovery]
) -> Table:
    """Return a summary table of the most important scores of each data set: the scores of clean
    texts, of the majority-class baseline, and of the best runs.

    A data set has no row if neither a utility nor an attack is known.
    """
    shown = [(score, *score.glance) for score in SCORES if score.glance is not None]
    rows: list[dict[str, object]] = []
    for dataset, of in values_of.items():
        stand_out = []
        for which, measure, best in STAND_OUT:
            known = {key: value.mean for key, value in of_score(of, measure).items() if key in grid}
            stand_out += [(which, best(known, key=known.__getitem__))] if known else []
        if not any(
            (score.name, key) in of for score in (UTILITY, ADAPTIVE) for key in (CLEAN, *grid)
        ):
            continue
        for which, key in (
            ("clean texts", CLEAN),
            ("majority, no text read", MAJORITY),
            *stand_out,
        ):
            read = [run for run in recovery if run.key == key]
            rows.append(
                {"dataset": dataset, "which": which}
                | (of_run(key) if key in grid else {})
                | {name: of.get((score.name, key)) for score, name, _ in shown}
                | {
                    f"recovered_{band}": run.share(band, dataset=dataset)
                    for run in read
                    for band in RECOVERED
                }
            )
    columns = [
        Column("dataset", "Data set"),
        Column("which", "Which"),
        *RUN,
        *(Column(name, head, formatting.mean_sd(score.decimals)) for score, name, head in shown),
        *(
            Column(f"recovered_{band}", head, formatting.interval)
            for band, head in RECOVERED.items()
        ),
    ]
    return Table("glance", columns, rows)


def unlearnt(values_of: Mapping[str, Values]) -> list[str]:
    """Return descriptions of the tasks and attacks in which a classifier on clean texts does not
    score clearly above the majority-class baseline.

    Returns:
        One text per task or attack, with both numbers.
    """
    problems = []
    for dataset, of in values_of.items():
        for measure, words in ((UTILITY, "utility"), (ADAPTIVE, "attack")):
            clean = of.get((measure.name, CLEAN))
            majority = of.get((measure.name, MAJORITY))
            if clean is not None and majority is not None and not is_learnt(clean, majority):
                problems.append(
                    f"{dataset}, {words}: {three(clean.mean)} ± "
                    f"{three(NORMAL * (clean.error or 0.0))} (95%) on clean "
                    f"texts, majority {three(majority.mean)}"
                )
    return problems


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """A table of evaluation scores, with a caption and a note on how to read it."""

    caption: str
    table: Table
    note: str


def dataset_tables(
    number: int, dataset: str, clean: EvaluatedRun, of: Values, runs: Sequence[Key]
) -> list[ScoreTable]:
    """Return the score tables of one data set: one table for each table of the papers that has a
    measured score.

    Args:
        number: number of the data set from 1, for ids.
        runs: runs of the grid, in the order of the rows.
    """
    tables = []
    for form in FORMS:
        metrics = dict.fromkeys(score.metric for score in form.scores)
        entries = {
            metric: entry
            for metric in metrics
            if (entry := clean.entry(dataset, metric)) is not None
        }
        notes = [BY_NAME[metric].note(entry) for metric, entry in entries.items()] + [source(form)]
        table = score_table(f"{form.name}-{number}", form, of, runs)
        tables.append(ScoreTable(f"{dataset}: {caption(form, clean)}", table, " ".join(notes)))
    return [one for one in tables if one.table.rows]


def average_tables(
    clean: EvaluatedRun, values_of: Mapping[str, Values], runs: Sequence[Key]
) -> list[ScoreTable]:
    """Return tables of mean scores over the data sets, for scores that are comparable between data
    sets.
    """
    tables = []
    own = {name: {**of, **losses(of)} for name, of in values_of.items()}
    for form in AVERAGED:
        measured = [name for name, of in own.items() if of_score(of, form.scores[0])]
        if len(measured) > 1:
            what = f"Mean over {formatting.listed(measured)}: {caption(form, clean)}"
            table = score_table(f"mean-{form.name}", form, averages(own, measured), runs)
            tables.append(ScoreTable(what, table, source(form)))
    return [one for one in tables if one.table.rows]


def caption(form: PaperTable, clean: EvaluatedRun) -> str:
    """Return the caption of a score table, with the name of the model that computed its scores."""
    metric = BY_NAME[form.scores[-1].metric]
    return (
        f"{form.caption} ({(metric.back_end or 'classifier').replace('_', ' ')}: "
        f"{clean.back_end(metric.name)})"
    )


def source(form: PaperTable) -> str:
    """Return a sentence that names the paper's table on which a table of the report is modelled."""
    return f"The form of {form.source}."


def score_table(name: str, form: PaperTable, of: Values, runs: Sequence[Key]) -> Table:
    """Return a table with a row for each mechanism, strategy and score, and a column for each
    epsilon. The table has no rows if no score is known.

    Args:
        form: description of the paper's table that this table follows.
    """
    epsilons = sorted({key[2] for key in runs})
    rows = []
    for mechanism, strategy in dict.fromkeys(key[:2] for key in runs):
        for score in form.scores:
            known = {
                key[2]: value
                for key, value in of_score(of, score).items()
                if key[:2] == (mechanism, strategy)
            }
            ends = {
                "clean": of.get((score.name, CLEAN)),
                "majority": of.get((score.name, MAJORITY)),
            }
            if known:
                rows.append(
                    {"mechanism": mechanism, "strategy": strategy, **ends}
                    | ({"score": score.words} if len(form.scores) > 1 else {})
                    | {epsilon_key(epsilon): value for epsilon, value in known.items()}
                )
    show = formatting.mean_sd(form.scores[0].decimals)
    columns = [
        *RUN[:2],
        Column("score", "Score"),
        Column("clean", "Clean texts", show, "No rewriting"),
        Column("majority", "Majority", show, "No rewriting"),
        *epsilon_columns(epsilons, show),
    ]
    return Table(name, columns, rows)


def charts(number: int, dataset: str, every: Values, mechanism: str) -> list[Chart]:
    """Make the charts of one data set and mechanism: scores over epsilon, and utility over attack
    success.

    Args:
        number: number of the data set from 1, for ids.
    """
    drawn = []
    for figure in (figure for metric in METRICS for figure in metric.figures):
        known = of_score(every, figure.score)
        ends = {
            which: known[key].mean
            for which, key in ((CLEAN_TEXTS, CLEAN), ("majority", MAJORITY))
            if key in known
        }
        drawn += over_epsilon(
            f"{figure.name}-{number}",
            f"{dataset}, {mechanism}: {figure.words} over ε",
            score_axis(figure.y_label, min((value.mean for value in known.values()), default=0.0)),
            known,
            mechanism,
            ends if figure.levels else {},
        )
    utility, attack = (of_score(one_kind(every), score) for score in (UTILITY, ADAPTIVE))
    both = {key: (attack[key], utility[key]) for key in utility if key in attack}
    own = {key: pair for key, pair in both.items() if key[0] == mechanism}
    if own and CLEAN in both and MAJORITY in both:
        (x_clean, y_clean), (x_majority, y_majority) = (
            [value.mean for value in both[key]] for key in (CLEAN, MAJORITY)
        )
        drawn.append(
            tradeoff(
                f"tradeoff-{number}-{mechanism}",
                f"{dataset}, {mechanism}: utility over attack",
                (
                    score_axis("adaptive attack (macro F1)"),
                    score_axis("utility on rewritten texts (macro F1)"),
                ),
                own,
                lambda key: key[1],
                (x_clean, y_clean),
                (x_majority, y_majority),
            )
        )
    return drawn


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "evaluation": tables, charts and plain
    values.
    """
    clean = report.clean
    mechanisms = report.params.grid.mechanisms
    entries = {
        (name, metric.name): clean.record["datasets"][name].get(metric.name)
        for name in clean.datasets
        for metric in METRICS
    }
    explanations = [metric.explanation for metric in METRICS if metric.explanation]
    evaluated = [
        (
            dataset,
            tables,
            [chart for one in mechanisms for chart in charts(number, dataset, of, one)],
        )
        for number, (dataset, of) in enumerate(report.values.items(), 1)
        if (tables := dataset_tables(number, dataset, clean, of, report.keys))
    ]
    return {
        "glance": glance_table(report.values, report.keys, report.recovery),
        "n_runs": len(report.keys),
        "unlearnt": unlearnt(report.values),
        "explanations": Markup("; ".join(explanations[:-1]) + f"; and {explanations[-1]}"),
        "average_tables": average_tables(clean, report.values, report.keys),
        "evaluated": evaluated,
        "left_out": {
            f"{dataset}, {BY_NAME[name].title}": entry["left_out"]
            for (dataset, name), entry in entries.items()
            if entry is not None and entry["left_out"] is not None
        },
        "not_measured": [
            metric.title
            for metric in METRICS
            if not any(entries[name, metric.name] for name in clean.datasets)
        ],
        "any_gain": any(of_score(of, GAIN) for of in report.values.values()),
    }
