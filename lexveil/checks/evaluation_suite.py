"""Expectations for the scores: one row per run, data set and setting, from ``evaluation_cells``."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import TOLERANCE, at_least_one, between, each_once, none_of, suite_of
from lexveil.evaluation.metrics import METRICS

AGAIN = (
    "`dvc repro --force evaluate evaluate_baseline` makes them again; if this stays, it "
    "is a fault of tasks/evaluate.py"
)
CELL = "; run {run}, data set {dataset}, {setting}"
RANGES = ", ".join(
    f"{metric.title} in [{metric.limits[0]:g}, {metric.limits[1]:.3g}]" for metric in METRICS
)
RULES = (
    at_least_one("cell"),
    each_once("run", "dataset", "setting", way_out="This is a fault of tasks/check_evaluation.py"),
    none_of(
        "is_missing", "Every run of the grid has every data set and setting", f"have no entry{CELL}"
    ),
    none_of(
        "is_at_odds",
        "What is scored or left out is so in all runs, on the same numbers of documents "
        "and classes",
        "are scored where the clean baseline is left out, the other way round, or on other "
        "documents" + CELL,
    ),
    none_of(
        "is_of_another",
        "All runs are measured by the back ends that params.yaml: evaluation names",
        f"are measured by another back end than params.yaml: evaluation names{CELL}",
    ),
    none_of(
        "n_outside",
        f"Every score lies in the range of its metric: {RANGES}",
        f"have scores that do not lie in their range{CELL}",
    ),
    none_of(
        "n_shuffles_off",
        "Every classifier was trained as often as params.yaml: evaluation.shuffles says",
        f"were not trained as often as params.yaml: evaluation.shuffles says{CELL}",
    ),
    between(
        "mean_gap",
        "A mean is that of its trainings",
        f"have a mean that is not that of their trainings{CELL}",
        high=TOLERANCE,
    ),
    between(
        "below_majority",
        "A classifier of clean texts is not below the majority-class baseline by more than chance",
        "have a macro F1 in clear that lies below the most frequent class's, by more than "
        "the number of documents "
        f"asked about explains{CELL}",
        "The split that is asked about has other labels than split train; split the "
        "documents at random",
        high=0,
    ),
)


def evaluation_suite() -> gx.ExpectationSuite:
    """Suite for scores: every cell of the grid that the clean baseline has is scored, with the
    configured number of trainings, and every score is in its range.
    """
    return suite_of("evaluation", "cells of run, data set and setting", RULES, AGAIN)
