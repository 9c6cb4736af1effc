"""Judge the scores of every run of the grid, and of the clean baseline: evaluation/** -> checks/evaluation.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, sqrt
from pathlib import Path
from statistics import fmean
from sys import float_info
from typing import TYPE_CHECKING, Any

from lexveil import paths
from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import EvaluationParams, GridParams, load_params
from lexveil.evaluation.scores import NAMES
from lexveil.evaluation.utility import SETTINGS
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import read_json, write_json

if TYPE_CHECKING:
    import pandas as pd

# What is measured by which back end, and in which range it must lie.
MEASURED_BY = {"utility": "classifier", "attack": "classifier", "similarity": "encoder", "perplexity": "language_model"}
RANGES = dict.fromkeys((*SETTINGS, "membership"), (0.0, 1.0))
RANGES |= {"similarity": (-1.0, 1.0), "perplexity": (1.0, float_info.max)}

# What rewriting does not change, so that it is the same in all runs.
SAME: dict[str, tuple[str, ...]] = dict.fromkeys(
    SETTINGS, ("left_out", "held_out", "n_train", "n_learnt", "n_test", "n_classes", "n_left_out", "majority")
)
SAME |= {
    "membership": ("left_out", "n_in", "n_out", "n_classes", "known_labels"),
    # A rewriting may leave nothing that an encoder or a language model knows.
    "similarity": ("n_texts", "n_original_unknown"),
    "perplexity": ("n_texts",),
}
COLUMNS = (
    "run", "dataset", "setting", "is_missing", "is_at_odds", "is_of_another", "is_scored", "n_outside",
    "n_shuffles_off", "mean_gap", "below_majority",
)  # fmt: skip
METRIC = "macro_f1"  # that is compared with the majority's


def read_scores(grid: GridParams) -> dict[str, dict[str, Any]]:
    """The scores by run, the clean baseline first, then what params.yaml names.

    Raises:
        MissingArtifact: if a run was not evaluated.
    """
    return {
        f"{mechanism}/{strategy}/{epsilon}": read_json(
            paths.evaluation(mechanism, strategy, epsilon),
            "evaluate_baseline" if mechanism == "none" else f"evaluate@{mechanism}-{strategy}-{epsilon}",
        )
        for mechanism, strategy, epsilon in grid.runs_and_clean()
    }


def cells(
    records: Mapping[str, Mapping[str, Any]], datasets: Sequence[str], settings: EvaluationParams
) -> pd.DataFrame:
    """What does not add up, one row per run, data set and setting.

    Args:
        records: by run; the first is the clean baseline.
        datasets: that there are to be.
        settings: what was to be measured by what, and how often each classifier was to be trained.

    Returns:
        COLUMNS. is_missing, is_at_odds, is_of_another (back end) and is_scored are 0 or 1; n_outside counts scores that
        are no number in their range, n_shuffles_off the trainings that are missing or too many; mean_gap is the largest
        distance of a mean from that of its trainings; below_majority, of the clean baseline, by how much more than the
        test documents leave open its macro F1 lies below that of who always says the most frequent class.
    """
    import pandas as pd

    base = next(iter(records.values()))
    rows = []
    for run, record in records.items():
        for dataset in datasets:
            for measured in RANGES:
                clean, entry = (one["datasets"].get(dataset, {}).get(measured) for one in (base, record))
                by = MEASURED_BY.get(measured)
                is_of_another = int(by is not None and record.get(by) != getattr(settings, by))
                for setting in SETTINGS.get(measured, (None,)):
                    missing, at_odds, *found = _cell(measured, clean, entry, setting, settings.shuffles)
                    below = _below_majority(entry, setting) if record is base and found[0] and setting else 0.0
                    name = f"{measured}/{setting}" if setting else measured
                    rows.append((run, dataset, name, missing, at_odds, is_of_another, *found, below))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cell(
    measured: str,
    clean: Mapping[str, Any] | None,
    entry: Mapping[str, Any] | None,
    setting: str | None,
    n_shuffles: int,
) -> tuple[int, int, int, int, int, float]:
    """COLUMNS from is_missing to mean_gap without is_of_another, of one entry and that of the clean baseline."""
    same = SAME[measured]
    is_at_odds = clean is not None and entry is not None and any(clean.get(name) != entry.get(name) for name in same)
    if "left_out" not in same and any(one is not None and one["left_out"] is not None for one in (clean, entry)):
        is_at_odds = False
    if entry is None or entry["left_out"] is not None:
        return int(entry is None), int(is_at_odds), 0, 0, 0, 0.0
    scores = _scores(measured, entry, setting)
    if not scores:
        return 1, int(is_at_odds), 0, 0, 0, 0.0
    low, high = RANGES[measured]
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


def _scores(
    measured: str, entry: Mapping[str, Any], setting: str | None
) -> list[tuple[float | None, Sequence[float] | None]]:
    """Each score of a cell: its mean, and its values by training where it has some; empty if they are not there."""
    if setting is not None:
        by_name = entry["scores"].get(setting)
        return [(by_name[name]["mean"], by_name[name]["each"]) for name in NAMES] if by_name else []
    if measured == "membership":
        return [(entry["auc"]["mean"], entry["auc"]["each"])]
    return [(entry.get(name), None) for name in {"similarity": ("mean",), "perplexity": ("mean", "corpus")}[measured]]


def half_width(n: int) -> float:
    """Half of the 95% interval of a share of one half, seen in n documents: 1.96·√(1/4n)."""
    return 1.96 * sqrt(0.25 / n)


def _below_majority(entry: Mapping[str, Any], setting: str) -> float:
    gap: float = entry["majority"][METRIC] - half_width(entry["n_test"]) - entry["scores"][setting][METRIC]["mean"]
    return max(gap, 0.0)


def not_above_majority(clean: Mapping[str, Any], datasets: Sequence[str]) -> list[str]:
    """Of the clean baseline: where a classifier is not better than the most frequent class, by more than chance.

    Nothing can be said there of what rewriting costs or hides: there was nothing to find.

    Returns:
        DATASET/utility or DATASET/attack, in order.
    """
    named = []
    for dataset in datasets:
        for measured, settings in SETTINGS.items():
            entry = clean["datasets"][dataset][measured]
            if entry["left_out"] is not None:
                continue
            best = max(entry["scores"][setting][METRIC]["mean"] for setting in settings)
            if best <= entry["majority"][METRIC] + half_width(entry["n_test"]):
                named.append(f"{dataset}/{measured}")
    return named


def run(
    records: Mapping[str, Mapping[str, Any]],
    datasets: Sequence[str],
    settings: EvaluationParams,
    out: Path,
    docs: DataDocs,
) -> dict[str, Any]:
    """Write the record and return its summary.

    Args:
        records: scores by run; the first is the clean baseline.
        datasets: that there are to be.
        settings: what was to be measured by what, and how often each classifier was to be trained.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.evaluation_suite import evaluation_suite
    from lexveil.checks.validation import validate

    out.unlink(missing_ok=True)
    frame = cells(records, datasets, settings)
    verdict = validate("evaluation", evaluation_suite(), frame, docs)
    summary = {
        "n_runs": len(records),
        "n_cells": len(frame),
        "n_scored": int(frame["is_scored"].sum()),
        "not_above_majority": not_above_majority(next(iter(records.values())), datasets),
    }
    write_json(verdict.record(summary), out)
    return summary


def main() -> None:
    """Run the stage."""
    params = load_params()
    summary = run(
        read_scores(params.grid),
        sorted(file.stem for file in paths.DOCUMENTS.glob("*.parquet")),
        params.evaluation,
        paths.CHECKS / "evaluation.json",
        DataDocs(paths.DATA_DOCS),
    )
    print(f"the scores hold: {summary['n_runs']} runs, {summary['n_scored']:,} of {summary['n_cells']:,} cells scored")
    if summary["not_above_majority"]:
        print(f"in clear no better than the most frequent class: {', '.join(summary['not_above_majority'])}")


if __name__ == "__main__":
    stage_main(main)
