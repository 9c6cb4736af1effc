"""Great Expectations suite for evaluation scores. The checked data frame has one row per run, data
set and setting, and comes from ``evaluation_cells``.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.lab.evaluation.metrics import METRICS
from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

AGAIN = (
    "`dvc repro --force evaluate evaluate_baseline` computes the scores again; if the fault "
    "remains, it is a bug in tasks/evaluate.py"
)
CELL = "; run {run}, data set {dataset}, {setting}"
RANGES = ", ".join(
    f"{metric.title} in [{metric.limits[0]:g}, {metric.limits[1]:.3g}]" for metric in METRICS
)
RULES = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one score",
        meta={"fault": "there is no score; at least 1 is needed"},
    ),
    gxe.ExpectCompoundColumnsToBeUnique(
        column_list=["run", "dataset", "setting"],
        description="No two rows have the same run, dataset, setting",
        meta={
            "fault": "{subject} occur more than once (run, dataset, setting)",
            "way_out": "This is a bug in tasks/check_evaluation.py",
        },
    ),
    zero(
        "is_missing",
        holds="Every run has every data set and setting",
        fault=f"{{subject}} have no entry{CELL}",
    ),
    zero(
        "is_at_odds",
        holds=(
            "Each score exists in all runs or in none, for the same numbers of documents and "
            "classes"
        ),
        fault=(
            "{subject} are scored but missing in the clean baseline, or missing but scored "
            "there, or computed from other documents" + CELL
        ),
    ),
    zero(
        "is_of_another",
        holds="All runs are measured by the back ends in params.yaml: evaluation",
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
        holds="Every classifier was trained params.yaml: evaluation.shuffles times",
        fault=(f"{{subject}} were not trained params.yaml: evaluation.shuffles times{CELL}"),
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="mean_gap",
        max_value=TOLERANCE,
        description="A mean is the mean of the scores of all trainings",
        meta={
            "fault": f"{{subject}} have a mean that differs from the mean of the trainings{CELL}"
        },
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="below_majority",
        max_value=0,
        description=(
            "A classifier of clean texts is not below the majority-class baseline by more "
            "than chance"
        ),
        meta={
            "fault": (
                f"{{subject}} have a macro F1 on clean texts that is below the "
                "majority-class baseline by more than the number of test documents "
                f"explains{CELL}"
            ),
            "way_out": (
                "The labels of the test split are distributed differently from the labels "
                "of split train; split the documents at random"
            ),
        },
    ),
)


def evaluation_suite() -> gx.ExpectationSuite:
    """Build the expectation suite for evaluation scores: every run has every score that the clean
    baseline (texts that were not rewritten) has, with the configured number of trainings, and every
    score is in its range.
    """
    return suite_of("evaluation", "cells of run, data set and setting", RULES, AGAIN)
