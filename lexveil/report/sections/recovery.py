"""What a best-informed reader gets back of each run, by frequency band, and what is to be had for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.accounting.budgets import STRATEGIES
from lexveil.evaluation.metrics.utility import UTILITY
from lexveil.levels import Level
from lexveil.recovery.bands import ALL
from lexveil.recovery.measured import GUESSES, LISTED
from lexveil.report import epsilon_units, formatting
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import CLEAN, MAJORITY, Values, one_kind
from lexveil.report.figures import Series, over_epsilon, tradeoff
from lexveil.report.panel import Panel, data
from lexveil.report.records import RunRecovery, has_levels, key_cells, key_columns
from lexveil.report.section import CsvFile, Section
from lexveil.report.table import Column, Table

WORDS_OF = {ALL: "all words", LISTED: "listed words"}  # of the others the name says it
READERS = {"by_word": "By the word", "by_context": "By context", "without_output": "Without the output"}
POINTS = ("n", "share", "low", "high")
_WHICH = [
    Column("mechanism", "Mechanism"),
    Column("strategy", "Strategy"),
    Column("epsilon", "Base ε", formatting.epsilon),
]


def words_of(band: str) -> str:
    """A band in words."""
    return WORDS_OF.get(band, f"{band} words")


def readers_table(runs: Sequence[RunRecovery]) -> Table:
    """What each reader gets back of all replaced words, per run."""
    shown = {"unchanged": "Unchanged"} | READERS
    return Table(
        "recovery",
        "Replaced words that a reader gets back, per run",
        [
            *_WHICH,
            Column("n", "Words", formatting.count),
            *(Column(name, head, formatting.interval) for name, head in shown.items()),
        ],
        [(*run.key, run.n_words(ALL), *(run.share(ALL, name) for name in shown)) for run in runs],
        "In brackets the 95% interval (Wilson). Without the output: what the language model guesses from the tokens that "
        "were kept alone; what is above it is what the output gives away.",
    )


def bands_table(runs: Sequence[RunRecovery]) -> Table:
    """What the reader gets back of each band, and what without the output."""
    bands = [band for band in runs[0].bands if band != ALL] if runs else []
    columns = [
        Column(f"{band}_{name}", head, formatting.interval, words_of(band).capitalize())
        for band in bands
        for name, head in (("recovered", "recovered"), ("without_output", "without the output"))
    ]
    rows = [
        (*run.key, *(run.share(band, name) for band in bands for name in ("recovered", "without_output")))
        for run in runs
    ]
    kept = [
        place
        for place, column in enumerate((*_WHICH, *columns))
        if place < len(_WHICH) or any(row[place] is not None for row in rows) or column.key.endswith("_recovered")
    ]
    return Table(
        "recovery-bands",
        "Replaced words that the best-informed reader gets back, by how frequent they are",
        [(*_WHICH, *columns)[place] for place in kept],
        [tuple(row[place] for place in kept) for row in rows],
        "Function words are stop words. Of the occurrences of all others in the public corpus frequent words make up 60%, "
        "middle ones 30%, and rare ones, names and diagnoses among them, the last 10%.",
    )


def lines(runs: Sequence[RunRecovery], mechanism: str, band: str) -> list[Series]:
    """One line per strategy over epsilon: what of a band is recovered, with half the width of its interval."""
    series = []
    for strategy in STRATEGIES:
        own = sorted((run for run in runs if run.key[:2] == (mechanism, strategy)), key=lambda run: run.key)
        points = [(run.key[2], share) for run in own if (share := run.share(band)) is not None]
        if points:
            series.append(
                Series(
                    strategy,
                    [epsilon for epsilon, _ in points],
                    [share.share for _, share in points],
                    [(share.high - share.low) / 2 for _, share in points],
                )
            )
    return series


def band_panels(runs: Sequence[RunRecovery], mechanism: str) -> list[Panel]:
    """Recovery over epsilon of one mechanism, a figure for each band of which words were replaced."""
    panels = []
    own = [run for run in runs if run.key[0] == mechanism and not isinstance(run.key[2], Level)]
    for band in own[0].bands if own else []:
        if series := lines(own, mechanism, band):
            name, title = f"recovery-{band}-{mechanism}", f"{mechanism}: {words_of(band)} recovered, over ε"
            svg = over_epsilon(
                name,
                title,
                "recovered (% of replaced words)",
                series,
                unit=epsilon_units.unit(mechanism),
                y_limits=(0, 1),
            )
            rows = [
                (*run.key, run.n_words(band), found.share, found.low, found.high)
                for run in own
                if (found := run.share(band)) is not None
            ]
            panels.append(Panel(title, svg, data(name, ["mechanism", "strategy", "epsilon", *POINTS], rows)))
    return panels


def utility_panels(values: Mapping[str, Values], runs: Sequence[RunRecovery], mechanism: str) -> list[Panel]:
    """Utility over recovery of one mechanism, a figure for each data set that has a utility."""
    panels = []
    for place, (dataset, every) in enumerate(values.items(), 1):
        of = one_kind(every)
        series, rows = [], []
        for strategy in STRATEGIES:
            own = sorted((run for run in runs if run.key[:2] == (mechanism, strategy)), key=lambda run: run.key)
            points = [
                (run.key, share, of[UTILITY.name, run.key])
                for run in own
                if (UTILITY.name, run.key) in of and (share := run.share(ALL, dataset=dataset)) is not None
            ]
            rows += [(*key, share.share, utility.mean) for key, share, utility in points]
            if points:
                x, y = [share for _, share, _ in points], [utility for _, _, utility in points]
                series.append(
                    Series(
                        strategy,
                        [one.share for one in x],
                        [one.mean for one in y],
                        [one.error for one in y],
                        [(one.high - one.low) / 2 for one in x],
                    )
                )
        clean, majority = (of.get((UTILITY.name, key)) for key in (CLEAN, MAJORITY))
        if series and clean is not None and majority is not None:
            guessed = [run.share(ALL, "without_output", dataset) for run in runs if run.key[0] == mechanism]
            alone = max((one.share for one in guessed if one is not None), default=0.0)
            name, title = f"utility-recovery-{place}-{mechanism}", f"{dataset}, {mechanism}: utility over recovery"
            label = "recovered (share of replaced words)"
            svg = tradeoff(name, title, label, series, clean=(1.0, clean.mean), levels=(alone, majority.mean))
            header = ["mechanism", "strategy", "epsilon", "recovered", "utility"]
            panels.append(Panel(title, svg, data(name, header, rows)))
    return panels


def csv_rows(runs: Sequence[RunRecovery]) -> CsvFile:
    """Header and rows of recovery.csv: every share of every run, data set and band."""
    with_levels = has_levels(runs)
    header = [*key_columns(with_levels=with_levels), "dataset", "band", "reader", *POINTS]
    rows: list[tuple[Any, ...]] = []
    for run in runs:
        for dataset in (None, *run.record["datasets"]):
            for band in run.bands:
                for which in ("unchanged", *GUESSES):
                    if (found := run.share(band, which, dataset)) is not None:
                        n = run.n_words(band, dataset)
                        named = (*key_cells(run.key, with_levels=with_levels), dataset or "", band, which)
                        rows.append((*named, n, found.share, found.low, found.high))
    return header, rows


def _model(names: set[str | None]) -> str:
    """What reads the context of all runs."""
    if None in names:
        return "a language model, which these runs have none of"
    return "an n-gram model of the public corpus" if names == {"kneser_ney"} else "a language model"


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    runs, mechanisms = report.recovery, report.params.grid.mechanisms
    return {
        "readers": readers_table(runs),
        "bands": bands_table(runs),
        "left_out": sorted({run.record["left_out"] for run in runs if run.record["left_out"]}),
        "model": _model({run.record["language_model"] for run in runs}),
        "drawn": [(one, band_panels(runs, one) + utility_panels(report.values, runs, one)) for one in mechanisms],
    }


def files(report: ReportData) -> Mapping[str, CsvFile]:
    """Every share, for other tools."""
    return {"recovery.csv": csv_rows(report.recovery)}


SECTION = Section(
    name="recovery",
    title="Recovery",
    heading="What a best-informed reader gets back",
    view=view,
    files=files,
    prose="""\
<p>ε cannot be compared between mechanisms, strategies and spaces; this can. A reader who knows the mechanism, its
parameters, the ε of each token and how frequent words are sees the output and guesses each replaced word:
<strong>by the word</strong>, from the output of that word alone, which no other guess from it beats, and
<strong>by context</strong>, from all outputs of the text and {{ model }}. Measured on evaluation data, whose words are known; the figures are functions of
source texts, and no part of what is published beside a release.</p>
{% for why in left_out %}<p>Not decoded: {{ why }}.</p>
{% endfor %}
{{ render_table(readers) }}
{{ render_table(bands) }}
{% for mechanism, panels in drawn %}
{% if drawn|length > 1 %}<h3>{{ mechanism }}</h3>{% endif %}
<div class="panels">
{% for one in panels %}{{ render_panel(one) }}{% endfor %}
</div>
{% endfor %}
<p>In plots over ε bars are 95% intervals. In plots of utility each line goes from the smallest ε (small marker)
to the largest; the star stands for the clean texts, dotted lines for what is had without reading the texts: the language
model alone, and the majority class.</p>
""",
)
