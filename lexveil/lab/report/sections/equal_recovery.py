"""Report section "equal recovery": utility, attack success and cosine of mechanisms, compared at
settings where an adversary recovers the same share of words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.base.levels import GridRun, RecoveryTarget
from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import UTILITY
from lexveil.lab.report import formatting
from lexveil.lab.report.charts import STYLES, Axis, Chart, ChartPoint, bar, lines, score_axis
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.equal_recovery import AtLevel, at_level, interval, made_at_levels, rungs
from lexveil.lab.report.evaluation_values import MAJORITY, Values
from lexveil.lab.report.table import Column, Table
from lexveil.readers.bands import ALL

LEVELS = (0.05, 0.2, 0.5)
MEASURES = {  # column and axis, by score
    UTILITY: ("Utility", "utility on rewritten texts (macro F1)"),
    ADAPTIVE: ("Attack", "adaptive attack (macro F1)"),
    COSINE: ("Cosine", "cosine of texts before and after"),
}
NAMES = [score.name for score in MEASURES]
ENDS = {"clean texts": CLEAN, "majority": MAJORITY}


def ordered(compared: Sequence[AtLevel]) -> list[AtLevel]:
    """Sort the scores by recovery level, then by falling utility; entries without a utility come
    last.
    """

    def rank(one: AtLevel) -> tuple[float, float]:
        return one.level, -one.scores[UTILITY.name].share if UTILITY.name in one.scores else 1.0

    return sorted(compared, key=rank)


def table(name: str, of: Values, compared: Sequence[AtLevel], words: str) -> Table:
    """Return a table of the scores of each mechanism and strategy at each recovery level, followed
    by the scores of clean texts and of the majority-class baseline.

    Args:
        words: the words to which the levels refer, for the headings.
    """
    shown = {score for one in compared for score in one.scores}
    rows: list[Mapping[str, object]] = [
        {
            "which": f"{one.mechanism} {one.strategy}",
            "level": one.level,
            "epsilon": one.epsilon,
            **one.scores,
        }
        | {"by_word": one.by_word, "recovered": one.recovered}
        for one in compared
    ]
    rows += [
        {"which": which}
        | {score: interval(of[score, key]) for score in shown if (score, key) in of}
        for which, key in ENDS.items()
    ]
    columns = [
        Column("which", "Which"),
        Column("level", "Recovered", formatting.percent),
        Column("by_word", "by the word", formatting.interval, f"Measured, of {words}"),
        Column("recovered", "best reader", formatting.interval, f"Measured, of {words}"),
        *(Column(score.name, head, formatting.bounded) for score, (head, _) in MEASURES.items()),
        Column("epsilon", "Base ε", formatting.epsilon_found),
    ]
    return Table(name, columns, rows, n_quiet=len(ENDS))


def charts(
    prefix: str, dataset: str, of: Values, compared: Sequence[AtLevel], x_label: str
) -> list[Chart]:
    """Make a chart of each score over the recovery level, or one for each score and strategy if one
    chart has no room for all lines.
    """
    strategies: Sequence[str | None] = [None]
    if len({(one.mechanism, one.strategy) for one in compared}) > STYLES:
        strategies = sorted({one.strategy for one in compared})
    drawn = []
    for score in MEASURES:
        for number, strategy in enumerate(strategies, 1):
            own = [
                one
                for one in compared
                if score.name in one.scores and strategy in (None, one.strategy)
            ]
            if own:
                name = f"{prefix}-{score.name.replace('_', '-')}-{number}"
                drawn.append(
                    _chart(
                        name,
                        dataset if strategy is None else f"{dataset}, {strategy}",
                        score,
                        own,
                        of,
                        x_label,
                    )
                )
    return drawn


def _chart(
    name: str, what: str, score: Score, compared: Sequence[AtLevel], of: Values, x_label: str
) -> Chart:
    """Make a chart of a score over the recovery level, with one line per mechanism and strategy and
    95% intervals.
    """
    known: dict[GridRun, AtLevel] = {
        (one.mechanism, one.strategy, RecoveryTarget(one.level)): one for one in compared
    }
    head, y_label = MEASURES[score]

    def point(key: GridRun) -> ChartPoint:
        reached = known[key].scores[score.name]
        epsilon = known[key].epsilon
        return ChartPoint(
            key[2].number,
            reached.share,
            y_ends=bar(reached),
            name=f"ε {formatting.epsilon_found(epsilon or 0.0)}",
        )

    return Chart(
        name=name,
        title=f"{what}: {head.lower()} at equal recovery",
        x=Axis(
            x_label,
            formatting.percent,
            formatting.percent,
            is_log=True,
            ticks=sorted({key[2].number for key in known}),
        ),
        y=score_axis(y_label),
        series=lines(sorted(known), lambda key: " ".join(key[:2]), point),
        across={
            which: of[score.name, key].mean
            for which, key in ENDS.items()
            if score is not COSINE and (score.name, key) in of
        },
    )


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "equal recovery": scores of runs at recovery
    levels, and interpolations between the runs at base epsilons.
    """
    made_at = []
    between = []
    grid = report.params.grid
    words = "all replaced words" if grid.recovery_band == ALL else f"{grid.recovery_band} words"
    for number, (dataset, of) in enumerate(report.values.items(), 1):
        runs_at_levels = ordered(
            made_at_levels(of, report.recovery, dataset, NAMES, grid.recovery_band)
        )
        if runs_at_levels:
            name = f"at-levels-{number}"
            x_label = f"level (% of {words} expected to be recovered)"
            drawn = charts(name, dataset, of, runs_at_levels, x_label)
            made_at.append((dataset, table(name, of, runs_at_levels, words), drawn))
        own = rungs(of, report.recovery, dataset, NAMES).values()
        reached = ordered([at_level(some, level) for level in LEVELS for some in own])
        if any(one.scores for one in reached):
            name = f"equal-recovery-{number}"
            drawn = charts(name, dataset, of, reached, "recovered (% of replaced content words)")
            between.append((dataset, table(name, of, reached, words), drawn))
    return {
        "made_at": made_at,
        "between": between,
        "has_epsilons": bool(grid.base_epsilons),
        "words": words,
    }
