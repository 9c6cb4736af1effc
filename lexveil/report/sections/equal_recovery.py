"""Utility, attack and cosine where a best-informed reader gets back equally much: what mechanisms are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.evaluation.metrics.attack import ADAPTIVE
from lexveil.evaluation.metrics.base import Score
from lexveil.evaluation.metrics.similarity import COSINE
from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.recovery.bands import ALL, CONTENT
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.report.equal_recovery import AtLevel, MadeAt, Rung, at_level, interval, made_at_levels, rungs
from lexveil.report.evaluation_values import CLEAN, MAJORITY, Values
from lexveil.report.figures import STYLES, Series, at_levels
from lexveil.report.formatting import Interval
from lexveil.report.panel import Panel, data
from lexveil.report.section import Section
from lexveil.report.table import Column, Table

LEVELS = (0.05, 0.2, 0.5)
MEASURES = {  # column and axis, by score
    UTILITY: ("Utility", "utility on rewritten texts (macro F1)"),
    ADAPTIVE: ("Attack", "adaptive attack (macro F1)"),
    COSINE: ("Cosine", "cosine of texts before and after"),
}
NAMES = [score.name for score in MEASURES]
X_LABEL = "recovered (% of replaced content words)"


def compared(own: Mapping[tuple[str, str], Sequence[Rung]], levels: Sequence[float]) -> list[AtLevel]:
    """Every mechanism and strategy at every level; at each the highest utility first."""
    found = [at_level(some, level) for level in levels for some in own.values()]
    return sorted(found, key=lambda one: (one.level, -_utility(one)))


def _utility(one: AtLevel) -> float:
    """For sorting: what has no utility comes last."""
    return one.scores[UTILITY.name].share if UTILITY.name in one.scores else -1.0


def table(place: int, dataset: str, of: Values, found: Sequence[AtLevel]) -> Table:
    """What each mechanism and strategy gives at each level, and what clean texts and no texts give.

    Args:
        place: of the data set, from 1, for ids.
    """
    shown = shown_in(found)
    rows: list[tuple[Any, ...]] = [
        (f"{one.mechanism} {one.strategy}", one.level, *(one.scores.get(score.name) for score in shown), one.epsilon)
        for one in found
    ]
    rows += [(which, None, *ends, None) for which, ends in anchors(of, shown)]
    return Table(
        f"equal-recovery-{place}",
        f"{dataset}: utility, attack and cosine where equally many words are recovered",
        [
            Column("which", "Which"),
            Column("recovered", "Recovered", formatting.share),
            *(Column(score.name, MEASURES[score][0], formatting.bounded) for score in shown),
            Column("epsilon", "Base ε", formatting.epsilon_found),
        ],
        rows,
        "In brackets 95% intervals. A dash: no two runs of this mechanism and strategy lie around the level; more values in "
        "grid.epsilons may.",
        quiet=frozenset({len(found), len(found) + 1}),
    )


def shown_in(found: Sequence[AtLevel]) -> list[Score]:
    """The measures that are known of one of some runs."""
    return [score for score in MEASURES if any(score.name in one.scores for one in found)]


def anchors(of: Values, shown: Sequence[Score]) -> list[tuple[str, list[Interval | None]]]:
    """What clean texts give, and what no texts."""
    named = (("clean texts", CLEAN), ("majority, no text read", MAJORITY))
    ends = [(which, [of.get((score.name, key)) for score in shown]) for which, key in named]
    return [(which, [None if end is None else interval(end) for end in some]) for which, some in ends]


def levels_table(place: int, dataset: str, of: Values, made: Sequence[MadeAt], band: str) -> Table:
    """What each mechanism and strategy gives at the levels it was run at, and what was recovered of it there.

    Args:
        place: of the data set, from 1, for ids.
        made: at least one; in the order of its rows.
        band: that the levels are of.
    """
    shown, measured = shown_in([one.at for one in made]), f"Measured, of {words_of(band)}"
    rows: list[tuple[Any, ...]] = [
        (
            f"{one.at.mechanism} {one.at.strategy}",
            one.at.level,
            one.by_word,
            one.recovered,
            *(one.at.scores.get(score.name) for score in shown),
            one.at.epsilon,
        )
        for one in made
    ]
    rows += [(which, None, None, None, *ends, None) for which, ends in anchors(of, shown)]
    return Table(
        f"at-levels-{place}",
        f"{dataset}: utility, attack and cosine at levels of recovery",
        [
            Column("which", "Which"),
            Column("level", "Level", formatting.level),
            Column("by_word", "by the word", formatting.interval, measured),
            Column("recovered", "best reader", formatting.interval, measured),
            *(Column(score.name, MEASURES[score][0], formatting.bounded) for score in shown),
            Column("epsilon", "ε of a token", formatting.epsilon_found),
        ],
        rows,
        "In brackets 95% intervals. At each level the highest utility comes first. Measured: what readers got back of the "
        "replaced words of these documents, by the word, which the level is expected of, and the best reader, who sees "
        "the context too.",
        quiet=frozenset({len(made), len(made) + 1}),
    )


def words_of(band: str) -> str:
    """The words that levels are of."""
    return "all replaced words" if band == ALL else f"{band} words"


def panels(
    place: int,
    dataset: str,
    of: Values,
    found: Sequence[AtLevel],
    levels: Sequence[float],
    prefix: str = "equal-recovery",
    x_label: str = X_LABEL,
) -> list[Panel]:
    """A figure for each measure; for each strategy too where one has not room for all lines."""
    drawn = []
    for score, (head, y_label) in MEASURES.items():
        known = [one for one in found if score.name in one.scores]
        ends = {
            label: of[score.name, key].mean
            for label, key in (("clean texts", CLEAN), ("majority", MAJORITY))
            if score is not COSINE and (score.name, key) in of
        }
        for part, (words, some) in enumerate(_split(known), 1):
            title = f"{dataset}{words}: {head.lower()} at equal recovery"
            name = f"{prefix}-{place}-{score.name.replace('_', '-')}-{part}"
            series = _series(some, score)
            svg = at_levels(name, title, x_label, y_label, series, levels=levels, anchors=ends)
            header = ["mechanism", "strategy", "recovered", "epsilon", score.name, "low", "high"]
            rows = [
                (one.mechanism, one.strategy, one.level, one.epsilon, end.share, end.low, end.high)
                for one in some
                for end in (one.scores[score.name],)
            ]
            drawn.append(Panel(title, svg, data(name, header, rows)))
    return drawn


def _split(found: Sequence[AtLevel]) -> list[tuple[str, Sequence[AtLevel]]]:
    """What stands in one figure, with words for it."""
    if len({(one.mechanism, one.strategy) for one in found}) <= len(STYLES):
        return [("", found)] if found else []
    strategies = sorted({one.strategy for one in found})
    return [(f", {strategy}", [one for one in found if one.strategy == strategy]) for strategy in strategies]


def _series(found: Sequence[AtLevel], score: Score) -> list[Series]:
    """One line per mechanism and strategy over the levels, with 95% intervals."""
    lines = []
    for which in sorted({(one.mechanism, one.strategy) for one in found}):
        own = [one for one in found if (one.mechanism, one.strategy) == which]
        ends = [one.scores[score.name] for one in own]
        lines.append(
            Series(
                " ".join(which),
                [one.level for one in own],
                [end.share for end in ends],
                [(end.high - end.low) / 2 for end in ends],
            )
        )
    return lines


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    shown, made_at = [], []
    grid = report.params.grid
    band, levels = grid.recovery_band, sorted(level.share for level in grid.levels)
    x_label = f"level (% of {words_of(band)} expected to be recovered)"
    for place, (dataset, of) in enumerate(report.values.items(), 1):
        made = made_at_levels(of, report.recovery, dataset, NAMES, band)
        made.sort(key=lambda one: (one.at.level, -_utility(one.at)))
        if made:
            drawn = panels(place, dataset, of, [one.at for one in made], levels, "at-levels", x_label)
            made_at.append((dataset, levels_table(place, dataset, of, made, band), drawn))
        own = rungs(of, report.recovery, dataset, NAMES, CONTENT)
        found = compared(own, LEVELS)
        if any(one.scores for one in found):
            shown.append((dataset, table(place, dataset, of, found), panels(place, dataset, of, found, LEVELS)))
    return {"made_at": made_at, "compared": shown, "has_epsilons": bool(grid.base_epsilons), "words": words_of(band)}


SECTION = Section(
    name="equal-recovery",
    title="At equal recovery",
    heading="What is kept where equally much is given away",
    view=view,
    prose="""\
<p>The same ε is another noise in every mechanism, strategy and space. Here they are compared where a best-informed
reader gets back the same share of the replaced words: at the same leakage, a higher utility or cosine and a weaker attack
are better.</p>
{% if made_at %}
<p>The runs of <code>grid.epsilons</code> at levels are made at equal leakage: for each mechanism and strategy the ε was found at
which a reader is expected to name that share of the {{ words }}, by public word frequencies alone, and every replaced
token got it, however long its text. What was measured on these documents stands beside the level. It departs from it
where their words are more or less frequent than public ones, and the best reader sees the context too; compare runs of a
level with each other, and look whether they were measured alike.</p>
{% for dataset, table, panels in made_at %}
{% if made_at|length > 1 %}<h3>{{ dataset }}</h3>{% endif %}
<div class="panels">
{% for one in panels %}{{ render_panel(one) }}{% endfor %}
</div>
{{ render_table(table) }}
{% endfor %}
{% if compared %}<h3>Between the runs at base epsilons</h3>{% endif %}
{% endif %}
{% if compared %}
<p>Of content words, which are no function words. Between the rungs of grid.epsilons of each mechanism and strategy the
figures are interpolated by straight lines, and never beyond them. Intervals take in trainings, the number of documents and that of the words recovered; not that
noise was drawn once.</p>
{% for dataset, table, panels in compared %}
{% if compared|length > 1 %}<h3>{{ dataset }}</h3>{% endif %}
<div class="panels">
{% for one in panels %}{{ render_panel(one) }}{% endfor %}
</div>
{{ render_table(table) }}
{% endfor %}
{% elif not made_at and has_epsilons %}
<p>No two runs of a mechanism and strategy lie around 5, 20 or 50% of recovered words, so there is nothing to compare:
more values in grid.epsilons may, and levels among them do.</p>
{% endif %}
""",
)
