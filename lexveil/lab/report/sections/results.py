"""Report section "results": unchanged tokens, similarity of replacements, spent privacy budget, and
recovery by adversaries, per run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.recovery.measured import GUESSES, LISTED
from lexveil.lab.report import epsilon_units, formatting
from lexveil.lab.report.charts import Chart, over_epsilon, score_axis, share_axis
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.records import Key, RunRecovery, key_cells, key_columns
from lexveil.lab.report.table import RUN, Column, CsvFile, Table, of_run
from lexveil.readers.bands import ALL, BANDS

NOISY = "Of the tokens that got noise"
SPENT = "Mean ε per text"
RESULTS = (
    Column("share_unchanged", "Unchanged", formatting.share, NOISY),
    Column("mean_cosine", "Mean cosine of the replaced", formatting.three, NOISY),
    Column("unprotected_share", "Unprotected", formatting.share, "Of all tokens"),
    Column("epsilon_spent_mean", "Spent", formatting.two, SPENT),
    Column("budget_mean", "Budget", formatting.two, SPENT),
)
SKIPPED = Column("skipped", "Skipped")
TOKENS = (
    Column("n_texts", "Texts", formatting.count),
    Column("n_tokens_in", "in", formatting.count, "Tokens"),
    Column("n_tokens_out", "out", formatting.count, "Tokens"),
    Column("n_words_in", "in", formatting.count, "Words"),
    Column("n_words_out", "out", formatting.count, "Words"),
    Column("n_perturbed", "got noise", formatting.count, "Tokens that"),
    Column("n_sampled", "were drawn at random", formatting.count, "Tokens that"),
    Column("n_kept", "were kept", formatting.count, "Tokens that"),
    Column("n_dropped", "were dropped", formatting.count, "Tokens that"),
)
READERS = {
    "unchanged": "Unchanged",
    "by_word": "By the word",
    "by_context": "By context",
    "by_neural": "By the neural model",
    "without_output": "Without the output",
    "knowing_rest": "Knowing the rest",
}
OF_NEURAL = ("by_neural", "knowing_rest")  # columns that are shown if the adversary was run

# Keys in metrics.json of the columns of runs.csv.
HEADLINE = ("share_unchanged", "mean_cosine", "unprotected_share")
METRICS = (*(column.key for column in TOKENS), *HEADLINE, "epsilon_spent_mean")
POINTS = ("n", "share", "low", "high")  # columns of recovery.csv


def results_table(report: ReportData) -> Table:
    """Return a table of the main metrics of each run; a skipped run has a row with the reason."""
    runs = {run.key: run for run in report.runs}
    rows = []
    for key in (*report.grid, CLEAN):
        if skipped := report.grid.get(key):
            reached = formatting.share(skipped.nearest)
            rows.append(of_run(key) | {"skipped": f"out of reach; the nearest is {reached}"})
            continue
        run = runs[key]
        spent = None if run.is_baseline else run.metrics["epsilon_spent_mean"]
        figures = {"epsilon_spent_mean": spent, "budget_mean": report.budget_mean(run.key)}
        rows.append(of_run(run.key) | dict(run.metrics) | figures)
    return Table("results", [*RUN, *RESULTS, SKIPPED], rows)


def readers_table(runs: Sequence[RunRecovery]) -> Table:
    """Return a table of the share of all replaced words that each adversary recovers, per run."""
    ran = {
        name: head
        for name, head in READERS.items()
        if name not in OF_NEURAL or any(run.share(ALL, name) for run in runs)
    }
    columns = [
        Column("n", "Words", formatting.count),
        *(Column(name, head, formatting.interval) for name, head in ran.items()),
    ]
    rows = [
        of_run(run.key) | {"n": run.n_words(ALL)} | {name: run.share(ALL, name) for name in ran}
        for run in runs
    ]
    return Table("recovery", [*RUN, *columns], rows)


def linkage_table(runs: Sequence[RunRecovery]) -> Table:
    """Return a table of how often each adversary finds the source of a rewritten text among other
    texts of the data set.
    """
    columns = [
        Column("dataset", "Data set"),
        Column("candidates", "Candidates", formatting.count),
        Column("structure", "By structure", formatting.share, "Sources found"),
        Column("naive", "By words alone", formatting.share, "Sources found"),
        Column("likelihood", "By the exact channel", formatting.share, "Sources found"),
    ]
    rows = [
        of_run(run.key) | {"dataset": dataset, "candidates": size} | dict(shares)
        for run in runs
        for dataset, size, shares in run.linkage
    ]
    return Table("linkage", [*RUN, *columns], rows)


def bands_table(runs: Sequence[RunRecovery]) -> Table:
    """Return a table of the share of words in each frequency band that the adversary recovers with
    and without the output.
    """
    bands = [band for band in runs[0].bands if band != ALL] if runs else []
    heads = {"recovered": "recovered", "without_output": "without the output"}
    columns = [
        Column(f"{band}_{name}", head, formatting.interval, words_of(band).capitalize())
        for band, (name, head) in itertools.product(bands, heads.items())
    ]
    rows = [
        of_run(run.key)
        | {
            f"{band}_{name}": run.share(band, name)
            for band, name in itertools.product(bands, heads)
        }
        for run in runs
    ]
    return Table("recovery-bands", [*RUN, *columns], rows)


def words_of(band: str) -> str:
    """Return the display name of a frequency band."""
    return {ALL: "all words", LISTED: "listed words"}.get(band, f"{band} words")


def charts(report: ReportData, mechanism: str) -> list[Chart]:
    """Make charts of three measures over epsilon: the share of unchanged tokens, the mean cosine,
    and the recovery of each frequency band.
    """
    unchanged, cosine = (
        {run.key: run.metrics[name] for run in report.runs if run.metrics[name] is not None}
        for name in ("share_unchanged", "mean_cosine")
    )
    drawn = over_epsilon(
        "unchanged",
        f"{mechanism}: tokens that come back unchanged, over ε",
        share_axis("unchanged (% of tokens with noise)"),
        unchanged,
        mechanism,
    )
    drawn += over_epsilon(
        "cosine",
        f"{mechanism}: mean cosine of replaced tokens, over ε",
        score_axis("mean cosine (1 = same direction)", min(cosine.values(), default=0.0)),
        cosine,
        mechanism,
    )
    for band in report.recovery[0].bands if report.recovery else ():
        shares = {
            run.key: share for run in report.recovery if (share := run.share(band)) is not None
        }
        title = f"{mechanism}: {words_of(band)} recovered, over ε"
        drawn += over_epsilon(
            f"recovery-{band}",
            title,
            share_axis("recovered (% of replaced words)"),
            shares,
            mechanism,
        )
    return drawn


def _shares(report: ReportData, key: Key) -> dict[str, float | None]:
    """Return the recovery of a run for all words and by frequency band, under the column names of
    runs.csv; empty for the clean baseline.
    """
    bands = {"recovered": ALL} | {f"recovered_{band}": band for band in BANDS}
    shares = {
        name: run.share(band)
        for run in report.recovery
        if run.key == key
        for name, band in bands.items()
    }
    return {name: None if share is None else share.share for name, share in shares.items()}


def runs_csv(report: ReportData) -> CsvFile:
    """Return the metrics of all runs as CSV, except the clean baseline, which has no epsilon to
    plot.
    """
    header = [
        *key_columns(report.keys),
        *METRICS,
        "budget_mean",
        "recovered",
        *(f"recovered_{band}" for band in BANDS),
    ]
    rows = [
        [
            *key_cells(run.key, report.keys),
            *(run.metrics[name] for name in METRICS),
            report.budget_mean(run.key),
            *_shares(report, run.key).values(),
        ]
        for run in report.runs
        if not run.is_baseline
    ]
    return header, rows


def recovery_csv(report: ReportData) -> CsvFile:
    """Return every recovered share as CSV, by run, data set and frequency band."""
    rows = [
        [
            *key_cells(run.key, report.keys),
            dataset or "",
            band,
            which,
            run.n_words(band, dataset),
            share.share,
            share.low,
            share.high,
        ]
        for run in report.recovery
        for dataset in (None, *run.record["datasets"])
        for band in run.bands
        for which in ("unchanged", *GUESSES)
        if (share := run.share(band, which, dataset)) is not None
    ]
    return [*key_columns(report.keys), "dataset", "band", "reader", *POINTS], rows


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "results": tables, charts and plain values."""
    models = {run.record["language_model"] for run in report.recovery}
    return {
        "results": results_table(report),
        "skipped": report.skipped,
        "units": epsilon_units.in_words(report.params.grid.mechanisms),
        "has_levels": bool(report.params.grid.levels),
        "is_per_token": report.params.grid.budget == "token",
        "tokens": Table(
            "tokens", [*RUN, *TOKENS], [of_run(run.key) | dict(run.metrics) for run in report.runs]
        ),
        "readers": readers_table(report.recovery),
        "bands": bands_table(report.recovery),
        "linkage": linkage_table(report.recovery),
        "left_out": sorted(
            {run.record["left_out"] for run in report.recovery if run.record["left_out"]}
        ),
        "has_model": None not in models,
        "is_public": models == {"kneser_ney"},
        "drawn": {
            mechanism: charts(report, mechanism) for mechanism in report.params.grid.mechanisms
        },
    }


def files(report: ReportData) -> Mapping[str, CsvFile]:
    """Return the CSV files of the section: the metrics of all runs, and all recovered shares."""
    return {"runs.csv": runs_csv(report), "recovery.csv": recovery_csv(report)}
