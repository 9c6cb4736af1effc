"""Consistency checks of evaluation scores over all runs of the grid; the result is the data frame
that ``evaluation_suite`` checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lexveil.io.config import EvaluationParams
from lexveil.lab.evaluation.metrics import METRICS
from lexveil.lab.evaluation.metrics.base import Entry, Metric
from lexveil.lab.evaluation.metrics.prediction import SETTINGS
from lexveil.lab.evaluation.scores import half_width

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "run",
    "dataset",
    "setting",
    "is_missing",
    "is_at_odds",
    "is_of_another",
    "is_scored",
    "n_outside",
    "n_shuffles_off",
    "mean_gap",
    "below_majority",
)
METRIC = "macro_f1"  # the score that is compared with the majority-class baseline


def cells(
    records: Mapping[str, Mapping[str, Any]], datasets: Sequence[str], settings: EvaluationParams
) -> pd.DataFrame:
    """Compare the scores of all runs and return one row per run, data set and setting, which counts
    what is missing or inconsistent.

    Args:
        records: evaluation records by run; the first record belongs to the clean baseline (texts
            that were not rewritten).
        datasets: names of the data sets that every run must have.
        settings: the configured back ends, and the number of trainings of each classifier.

    Returns:
        A frame with the columns ``COLUMNS``. is_missing, is_at_odds (with the clean baseline),
            is_of_another (computed by another model than the configured one) and is_scored are 0 or
            1. n_outside counts scores that are not a number in the range of their metric.
            n_shuffles_off is the number of trainings that are missing or too many. mean_gap is the
            largest difference between a stored mean and the mean of the trainings. below_majority
            is 0 except for the clean baseline: the distance by which the macro F1 on clean texts
            lies below the majority-class baseline, beyond the margin that the number of test
            documents allows.
    """
    import pandas as pd

    base = next(iter(records.values()))
    rows = []
    for run, record in records.items():
        for dataset in datasets:
            for metric in METRICS:
                clean, entry = (
                    one["datasets"].get(dataset, {}).get(metric.name) for one in (base, record)
                )
                back_end = metric.back_end
                is_of_another = int(
                    bool(back_end) and record.get(back_end) != getattr(settings, back_end)
                )
                for setting in metric.settings:
                    missing, at_odds, *counts = _cell(
                        metric, clean, entry, setting, settings.shuffles
                    )
                    below = (
                        _below_majority(entry, setting)
                        if record is base and counts[0] and setting
                        else 0.0
                    )
                    name = f"{metric.name}/{setting}" if setting else metric.name
                    rows.append(
                        (run, dataset, name, missing, at_odds, is_of_another, *counts, below)
                    )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cell(
    metric: Metric,
    clean: Entry | None,
    entry: Entry | None,
    setting: str | None,
    n_shuffles: int,
) -> tuple[int, int, int, int, int, float]:
    """Compare one metric's entry in a run with the entry of the clean baseline (texts that were not
    rewritten), and return the values of the ``COLUMNS`` is_missing, is_at_odds, is_scored,
    n_outside, n_shuffles_off and mean_gap.
    """
    same = metric.same
    is_at_odds = (
        clean is not None
        and entry is not None
        and any(clean.get(name) != entry.get(name) for name in same)
    )
    if "left_out" not in same and any(
        one is not None and one["left_out"] is not None for one in (clean, entry)
    ):
        is_at_odds = False
    if entry is None or entry["left_out"] is not None:
        return int(entry is None), int(is_at_odds), 0, 0, 0, 0.0
    scores = metric.values(entry, setting)
    if not scores:
        return 1, int(is_at_odds), 0, 0, 0, 0.0
    low, high = metric.limits
    values = [value for mean, each in scores for value in (mean, *(each or []))]
    trained = [(mean, each) for mean, each in scores if mean is not None and each is not None]
    return (
        0,
        int(is_at_odds),
        1,
        sum(not (value is not None and low <= value <= high) for value in values),
        max((abs(len(each) - n_shuffles) for _, each in trained), default=0),
        max((abs(mean - fmean(each or [inf])) for mean, each in trained), default=0.0),
    )


def _below_majority(entry: Mapping[str, Any], setting: str) -> float:
    gap: float = (
        entry["majority"][METRIC]
        - half_width(entry["n_test"])
        - entry["scores"][setting][METRIC]["mean"]
    )
    return max(gap, 0.0)


def not_above_majority(clean: Mapping[str, Any], datasets: Sequence[str]) -> list[str]:
    """Return the classification tasks and attacks for which a classifier trained on clean (not
    rewritten) texts does not beat the majority-class baseline by more than chance.

    For these tasks and attacks, no effect of rewriting can be measured, because clean texts already
    show nothing.

    Returns:
        DATASET/utility or DATASET/attack, in order.
    """
    cells = []
    for dataset in datasets:
        for metric, settings in SETTINGS.items():
            entry = clean["datasets"][dataset][metric]
            if entry["left_out"] is not None:
                continue
            best = max(entry["scores"][setting][METRIC]["mean"] for setting in settings)
            if best <= entry["majority"][METRIC] + half_width(entry["n_test"]):
                cells.append(f"{dataset}/{metric}")
    return cells
