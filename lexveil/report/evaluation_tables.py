"""The evaluation as tables: next to clean texts and the majority-class baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.evaluation.metrics import BY_NAME, METRICS
from lexveil.evaluation.metrics.base import PaperTable
from lexveil.evaluation.metrics.utility import LOSS
from lexveil.levels import Level
from lexveil.report import formatting
from lexveil.report.evaluation_values import CLEAN, MAJORITY, EvaluatedRun, Key, Values, averages, losses
from lexveil.report.table import Column, Table

FORMS = tuple(table for metric in METRICS for table in metric.tables)
_AVERAGED = (
    *(form for form in FORMS if form.averaged),
    PaperTable("loss", "utility loss against clean texts, micro F1", (LOSS,), "CLMLDP and 1-Diffractor Figure 2"),
)


@dataclass(frozen=True, slots=True)
class TableContext:
    """What tables have in common.

    Attributes:
        runs: of the grid, in the order of the rows.
    """

    clean: EvaluatedRun
    runs: Sequence[Key]


def dataset_tables(place: int, dataset: str, clean: EvaluatedRun, of: Values, runs: Sequence[Key]) -> list[Table]:
    """One table for each form of which anything was measured.

    Args:
        place: of the data set, from 1, for ids.
        runs: of the grid, in the order of its rows.
    """
    context = TableContext(clean, runs)
    return [table for form in FORMS if (table := _table(f"{form.name}-{place}", dataset, [dataset], form, of, context))]


def average_tables(clean: EvaluatedRun, values_of: Mapping[str, Values], runs: Sequence[Key]) -> list[Table]:
    """Means over the data sets of what is comparable between them."""
    tables, context = [], TableContext(clean, runs)
    own = {name: {**of, **losses(of)} for name, of in values_of.items()}
    for form in _AVERAGED:
        (score,) = form.scores
        measured = [name for name, of in own.items() if any(known == score.name for known, _ in of)]
        if len(measured) > 1:
            what = f"Mean over {formatting.listed(measured)}"
            table = _table(f"mean-{form.name}", what, measured, form, averages(own, measured), context)
            tables += [table] if table else []
    return tables


def _table(
    name: str,
    what: str,
    datasets: Sequence[str],
    form: PaperTable,
    of: Values,
    context: TableContext,
) -> Table | None:
    clean, runs = context.clean, context.runs
    rows_of = list(dict.fromkeys((mechanism, strategy) for mechanism, strategy, _ in runs))
    epsilons = sorted({epsilon for _, _, epsilon in runs}, key=lambda one: (isinstance(one, Level), float(one)))
    show = formatting.mean_sd_one if form.scores[0].decimals == 1 else formatting.mean_sd
    rows: list[tuple[Any, ...]] = []
    for mechanism, strategy in rows_of:
        for score in form.scores:
            each = [of.get((score.name, (mechanism, strategy, epsilon))) for epsilon in epsilons]
            if any(value is not None for value in each):
                base, majority = of.get((score.name, CLEAN)), of.get((score.name, MAJORITY))
                rows.append((mechanism, strategy, score.words, base, majority, *each))
    if not rows:
        return None
    columns = [
        Column("mechanism", "Mechanism"),
        Column("strategy", "Strategy"),
        Column("score", "Score"),
        Column("clean", "Clean texts", show, "No rewriting"),
        Column("majority", "Majority", show, "No rewriting"),
        *(
            Column(f"level_{one:g}", formatting.level(one), show, "Level of recovery")
            if isinstance(one, Level)
            else Column(f"epsilon_{one:g}", formatting.epsilon(one), show, "Base ε")
            for one in epsilons
        ),
    ]
    dropped = [
        place
        for place, column in enumerate(columns)
        if (column.key == "score" and len(form.scores) == 1)
        or (column.key in ("clean", "majority") and all(row[place] is None for row in rows))
    ]
    kept = [place for place in range(len(columns)) if place not in dropped]
    metric = BY_NAME[form.scores[-1].metric]
    back_end = f"{(metric.back_end or 'classifier').replace('_', ' ')}: {clean.back_end(metric.name)}"
    note = f"The form of {form.source}."
    if len(datasets) == 1:
        for metric_name in reversed(dict.fromkeys(score.metric for score in form.scores)):
            entry = clean.entry(datasets[0], metric_name)
            note = note if entry is None else f"{BY_NAME[metric_name].note(entry)} {note}"
    return Table(
        name,
        f"{what}: {form.caption} ({back_end})",
        [columns[place] for place in kept],
        [tuple(row[place] for place in kept) for row in rows],
        note,
    )
