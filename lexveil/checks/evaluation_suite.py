"""What must hold of the scores: one row per run, data set and setting, from evaluation_cells."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import TOLERANCE, at_least_one_row, between, each_once, none_of, suite_of
from lexveil.evaluation.metrics import METRICS

AGAIN = (
    "`dvc repro --force evaluate evaluate_baseline` makes them again; if this stays, it is a fault of tasks/evaluate.py"
)
ROWS = "cells of run, data set and setting"


def evaluation_suite() -> gx.ExpectationSuite:
    """Every cell of the grid is scored where the clean baseline is, as often as asked, and by what can be a score."""
    rules = [
        at_least_one_row("There is at least one cell", f"there are no {ROWS}, at least 1 is needed", AGAIN),
        each_once(
            ["run", "dataset", "setting"],
            "Every cell is there once",
            f"{{unexpected:,}} of {{checked:,}} {ROWS} are there more than once",
            "This is a fault of tasks/check_evaluation.py",
        ),
        *(
            none_of(
                column,
                says,
                f"{{unexpected:,}} of {{checked:,}} {ROWS} {fault}; run {{run}}, data set {{dataset}}, {{setting}}",
                AGAIN,
            )
            for column, says, fault in COUNTED
        ),
        between(
            "mean_gap",
            "A mean is that of its trainings",
            f"{{unexpected:,}} of {{checked:,}} {ROWS} have a mean that is not that of their trainings "
            "(run {run}, data set {dataset}: {worst:.3g} away, limit {limit:g})",
            AGAIN,
            high=TOLERANCE,
        ),
        between(
            "below_majority",
            "A classifier of clean texts is not below the majority-class baseline by more than chance",
            f"{{unexpected:,}} of {{checked:,}} {ROWS} are worse in clear than the most frequent class (data set "
            "{dataset}, {setting}: macro F1 {worst:.3f} further below than the number of documents asked about "
            "explains, limit {limit:g})",
            "The split that is asked about has other labels than split train; split the documents at random",
            high=0,
        ),
    ]
    return suite_of("evaluation", ROWS, rules, AGAIN)


# What must not occur: column, what holds instead, and how messages go on after "3 of 412 cells ...".
COUNTED = (
    ("is_missing", "Every run of the grid has every data set and setting", "have no entry"),
    (
        "is_at_odds",
        "What is scored or left out is so in all runs, on the same numbers of documents and classes",
        "are scored where the clean baseline is left out, the other way round, or on other documents",
    ),
    (
        "is_of_another",
        "All runs are measured by the back ends that params.yaml: evaluation names",
        "are measured by another back end than params.yaml: evaluation names",
    ),
    (
        "n_outside",
        "Every score lies in the range of its metric: "
        + ", ".join(f"{metric.title} in [{metric.limits[0]:g}, {metric.limits[1]:.3g}]" for metric in METRICS),
        "have scores that do not lie in their range (up to {worst:.0f})",
    ),
    (
        "n_shuffles_off",
        "Every classifier was trained as often as params.yaml: evaluation.shuffles says",
        "were not trained as often as params.yaml: evaluation.shuffles says (off by up to {worst:.0f})",
    ),
)
