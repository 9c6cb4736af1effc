"""Results per run: unchanged tokens, similarity of replacements, and spent budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.accounting.budgets import STRATEGIES
from lexveil.levels import Level
from lexveil.recovery.bands import ALL, BANDS
from lexveil.report import epsilon_units, formatting
from lexveil.report.data import ReportData
from lexveil.report.evaluation_values import Key
from lexveil.report.figures import Series, over_epsilon
from lexveil.report.panel import Panel, series_data
from lexveil.report.records import RunRecovery, RunResult, has_levels, key_cells, key_columns
from lexveil.report.section import CsvFile, Section
from lexveil.report.table import Column, Table

Recovery = Mapping[Key, RunRecovery]

_WHICH = [
    Column("mechanism", "Mechanism"),
    Column("strategy", "Strategy"),
    Column("epsilon", "Base ε", formatting.epsilon),
]
CSV_COLUMNS = (
    "n_texts", "n_tokens_in", "n_tokens_out", "n_words_in", "n_words_out", "n_perturbed", "n_sampled", "n_kept",
    "n_dropped", "share_unchanged", "mean_cosine", "unprotected_share", "epsilon_spent_mean",
)  # fmt: skip  # fmt: skip


def results_table(runs: Sequence[RunResult], recovery: Recovery) -> Table:
    """What comes back, per run."""
    mechanisms = list(dict.fromkeys(run.mechanism for run in runs if not run.is_baseline))
    return Table(
        "results",
        "What comes back, per run",
        [
            *_WHICH,
            Column("share_unchanged", "Unchanged", formatting.share, "Of the tokens that got noise"),
            Column("recovered", "Recovered", formatting.share, "Of the tokens that got noise"),
            Column("mean_cosine", "Mean cosine of the replaced", formatting.three, "Of the tokens that got noise"),
            Column("unprotected_share", "Unprotected", formatting.share, "Of all tokens"),
            Column("epsilon_spent_mean", "Spent", formatting.two, "Mean ε per text"),
            Column("budget_mean", "Budget", formatting.two, "Mean ε per text"),
        ],
        [
            (
                *run.key,
                run.metrics["share_unchanged"],
                recovered(recovery, run, ALL),
                run.metrics["mean_cosine"],
                run.metrics["unprotected_share"],
                None if run.is_baseline else run.metrics["epsilon_spent_mean"],
                run.budget_mean,
            )
            for run in runs
        ],
        "Unchanged: the noise led back to the token itself, which then leaves as it was, though whoever reads it "
        "cannot be sure. Recovered: what a reader who knows all but the text guesses right, of the documents that are read "
        "for it. Mean cosine: how near the vector of a replacement is to that of the token it replaces, 1 for "
        f"the same direction, 0 for an unrelated one. {epsilon_units.in_words(mechanisms)}{of_levels(runs)}",
    )


def recovered(recovery: Recovery, run: RunResult, band: str) -> float | None:
    """The share of a band that a best-informed reader gets back."""
    found = recovery[run.key].share(band) if run.key in recovery else None
    return None if found is None else found.share


def of_levels(runs: Sequence[RunResult]) -> str:
    """What a row of a run at a level says; empty without one."""
    if not has_levels(runs):
        return ""
    return (
        " A run with a percentage is at that level of recovery: each of its tokens got the ε beside it, however long its "
        "text, so that there is no one budget of all texts."
    )


def tokens_table(runs: Sequence[RunResult]) -> Table:
    """Tokens and words in and out, per run."""
    keys = {
        "n_texts": ("Texts", ""),
        "n_tokens_in": ("in", "Tokens"),
        "n_tokens_out": ("out", "Tokens"),
        "n_words_in": ("in", "Words"),
        "n_words_out": ("out", "Words"),
        "n_perturbed": ("got noise", "Tokens that"),
        "n_sampled": ("were drawn at random", "Tokens that"),
        "n_kept": ("were kept", "Tokens that"),
        "n_dropped": ("were dropped", "Tokens that"),
    }
    return Table(
        "tokens",
        "Tokens and words in and out, per run",
        [*_WHICH, *(Column(key, head, formatting.count, group) for key, (head, group) in keys.items())],
        [(*run.key, *(run.metrics[key] for key in keys)) for run in runs],
        "A token is one word, a collocation of two or three, or a punctuation mark; words here include punctuation "
        "marks. A replacement may have more or fewer words than what it replaces.",
    )


def series(runs: Sequence[RunResult], mechanism: str, metric: str) -> list[Series]:
    """One line per strategy over epsilon; a run without the number has no point."""
    lines = []
    for strategy in STRATEGIES:
        points = sorted(
            (run.epsilon, run.metrics[metric])
            for run in runs
            if (run.mechanism, run.strategy) == (mechanism, strategy)
            and run.metrics[metric] is not None
            and not isinstance(run.epsilon, Level)
        )
        if points:
            lines.append(Series(strategy, [x for x, _ in points], [y for _, y in points]))
    return lines


def result_figures(all_runs: Sequence[RunResult], mechanisms: Sequence[str]) -> list[tuple[str, list[Panel]]]:
    """Two figures per mechanism: share unchanged, and mean cosine, over epsilon."""
    drawn = []
    for mechanism in mechanisms:
        unchanged, cosine = (series(all_runs, mechanism, name) for name in ("share_unchanged", "mean_cosine"))
        if not unchanged and not cosine:
            continue
        lowest = min((y for line in cosine for y in line.y), default=0.0)
        names = [f"unchanged-{mechanism}", f"cosine-{mechanism}"]
        panels = [
            Panel(
                "Tokens that come back unchanged",
                over_epsilon(
                    names[0],
                    f"{mechanism}: share of tokens that come back unchanged, over ε",
                    "unchanged (% of tokens with noise)",
                    unchanged,
                    unit=epsilon_units.unit(mechanism),
                    y_limits=(0, 1),
                ),
                series_data(names[0], "strategy", "epsilon", "share_unchanged", unchanged),
            ),
            Panel(
                "Mean cosine of replaced tokens",
                over_epsilon(
                    names[1],
                    f"{mechanism}: mean cosine of replaced tokens, over ε",
                    "mean cosine (1 = same direction)",
                    cosine,
                    unit=epsilon_units.unit(mechanism),
                    y_limits=(min(0.0, lowest), 1),
                ),
                series_data(names[1], "strategy", "epsilon", "mean_cosine", cosine),
            ),
        ]
        drawn.append((mechanism, panels))
    return drawn


def csv_rows(runs: Sequence[RunResult], recovery: Recovery) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Header and rows of runs.csv. Without the baseline, which has no epsilon to be plotted over."""
    bands = {"recovered": ALL} | {f"recovered_{band}": band for band in BANDS}
    with_levels = has_levels(runs)
    header = [*key_columns(with_levels=with_levels), *CSV_COLUMNS, "budget_mean", *bands]
    rows = [
        (
            *key_cells(run.key, with_levels=with_levels),
            *(run.metrics[name] for name in CSV_COLUMNS),
            run.budget_mean,
            *(recovered(recovery, run, band) for band in bands.values()),
        )
        for run in runs
        if not run.is_baseline
    ]
    return header, rows


def headline(runs: Sequence[RunResult], recovery: Recovery) -> dict[str, dict[str, float]]:
    """The numbers `dvc metrics diff` compares, by run; a number that does not exist is left out."""
    names = ("share_unchanged", "mean_cosine", "unprotected_share")
    found = {}
    for run in runs:
        numbers = {name: run.metrics[name] for name in names}
        numbers |= {"recovered": recovered(recovery, run, ALL), "recovered_rare": recovered(recovery, run, "rare")}
        own = {name: number for name, number in numbers.items() if number is not None}
        found[f"{run.mechanism}/{run.strategy}/{run.epsilon}"] = own
    return found


def recovery_of(report: ReportData) -> Recovery:
    """What a reader gets back, by run."""
    return {one.key: one for one in report.recovery}


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    return {
        "result_figures": result_figures(report.runs, report.params.grid.mechanisms),
        "results": results_table(report.runs, recovery_of(report)),
        "tokens": tokens_table(report.runs),
    }


def metrics(report: ReportData) -> Mapping[str, Any]:
    """What metrics.json has of the runs."""
    return {"runs": headline(report.runs, recovery_of(report))}


def files(report: ReportData) -> Mapping[str, CsvFile]:
    """What `dvc plots` draws."""
    return {"runs.csv": csv_rows(report.runs, recovery_of(report))}


SECTION = Section(
    name="results",
    title="Results",
    heading="Results per run",
    view=view,
    metrics=metrics,
    files=files,
    prose="""\
{% for mechanism, panels in result_figures %}
{% if result_figures|length > 1 %}<h3>{{ mechanism }}</h3>{% endif %}
<div class="panels">
{% for one in panels %}{{ render_panel(one) }}{% endfor %}
</div>
{% endfor %}
{{ render_table(results) }}
{{ render_table(tokens) }}
""",
)
