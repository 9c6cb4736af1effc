"""Expectations for the scores: one row per run, data set and setting, from ``evaluation_cells``."""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.lab.evaluation.metrics import METRICS
from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

AGAIN = (
    "`dvc repro --force evaluate evaluate_baseline` makes them again; if this stays, it "
    "is a fault of tasks/evaluate.py"
)
CELL = "; run {run}, data set {dataset}, {setting}"
RANGES = ", ".join(
    f"{metric.title} in [{metric.limits[0]:g}, {metric.limits[1]:.3g}]" for metric in METRICS
)
RULES = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one cell",
        meta={"fault": "there is no cell, at least 1 is needed"},
    ),
    gxe.ExpectCompoundColumnsToBeUnique(
        column_list=["run", "dataset", "setting"],
        description="No two rows have the same run, dataset, setting",
        meta={
            "fault": "{subject} are there more than once (run, dataset, setting)",
            "way_out": "This is a fault of tasks/check_evaluation.py",
        },
    ),
    zero(
        "is_missing",
        holds="Every run of the grid has every data set and setting",
        fault=f"{{subject}} have no entry{CELL}",
    ),
    zero(
        "is_at_odds",
        holds=(
            "What is scored or left out is so in all runs, on the same numbers of "
            "documents "
            "and classes"
        ),
        fault=(
            "{subject} are scored where the clean baseline is left out, the other way "
            "round, or on other "
            "documents" + CELL
        ),
    ),
    zero(
        "is_of_another",
        holds="All runs are measured by the back ends that params.yaml: evaluation names",
        fault=(
            f"{{subject}} are measured by another back end than params.yaml: evaluation names{CELL}"
        ),
    ),
    zero(
        "n_outside",
        holds=f"Every score lies in the range of its metric: {RANGES}",
        fault=f"{{subject}} have scores that do not lie in their range{CELL}",
    ),
    zero(
        "n_shuffles_off",
        holds="Every classifier was trained as often as params.yaml: evaluation.shuffles says",
        fault=(
            f"{{subject}} were not trained as often as params.yaml: evaluation.shuffles says{CELL}"
        ),
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="mean_gap",
        max_value=TOLERANCE,
        description="A mean is the mean of the scores of its trainings",
        meta={"fault": f"{{subject}} have a mean that is not that of their trainings{CELL}"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="below_majority",
        max_value=0,
        description="A classifier of clean texts is not below the majority-class baseline by more "
        "than chance",
        meta={
            "fault": "{subject} have a macro F1 in clear that lies below the most frequent "
            "class's, by more than "
            "the number of documents "
            f"asked about explains{CELL}",
            "way_out": "The split that is asked about has other labels than split train; split the "
            "documents at random",
        },
    ),
)


def evaluation_suite() -> gx.ExpectationSuite:
    """Suite for scores: every cell of the grid that the clean baseline has is scored, with the
    configured number of trainings, and every score is in its range.
    """
    return suite_of("evaluation", "cells of run, data set and setting", RULES, AGAIN)
