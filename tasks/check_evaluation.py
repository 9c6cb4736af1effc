"""Judge the scores of every run of the grid, and of the clean baseline: evaluation/** -> checks/evaluation.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tasks.evaluation.evaluate import SETTINGS
from tasks.evaluation.scores import NAMES
from tasks.io import paths
from tasks.io.docs import DataDocs
from tasks.io.params import GridParams, load_params
from tasks.io.stage import stage_main
from tasks.io.tables import read_json, write_json

if TYPE_CHECKING:
    import pandas as pd

# What rewriting does not change, so that it is the same in all runs.
SAME = ("left_out", "held_out", "n_train", "n_learnt", "n_test", "n_classes", "n_left_out", "majority")
COLUMNS = (
    "run", "dataset", "setting", "is_missing", "is_at_odds", "is_scored", "n_outside", "n_shuffles_off", "mean_gap",
)  # fmt: skip


def read_scores(grid: GridParams) -> dict[str, dict[str, Any]]:
    """The scores by run, the clean baseline first, then what params.yaml names.

    Raises:
        MissingArtifact: if a run was not evaluated.
    """
    runs = [("none", "none", 0.0)] + [
        (mechanism, strategy, epsilon)
        for mechanism in grid.mechanisms
        for strategy in grid.strategies
        for epsilon in grid.epsilons
    ]
    return {
        f"{mechanism}/{strategy}/{epsilon}": read_json(
            paths.evaluation(mechanism, strategy, epsilon),
            "evaluate_baseline" if mechanism == "none" else f"evaluate@{mechanism}-{strategy}-{epsilon}",
        )
        for mechanism, strategy, epsilon in runs
    }


def cells(records: Mapping[str, Mapping[str, Any]], datasets: Sequence[str], n_shuffles: int) -> pd.DataFrame:
    """What does not add up, one row per run, data set and setting.

    Args:
        records: by run; the first is the clean baseline.
        datasets: that there are to be.
        n_shuffles: how often each classifier had to be trained.

    Returns:
        COLUMNS. is_missing, is_at_odds and is_scored are 0 or 1; n_outside counts scores that are no number in [0, 1],
        n_shuffles_off the trainings that are missing or too many; mean_gap is the largest distance of a mean from that
        of its trainings.
    """
    import pandas as pd

    base = next(iter(records.values()))
    rows = []
    for run, record in records.items():
        for dataset in datasets:
            for measured, settings in SETTINGS.items():
                clean, entry = (one["datasets"].get(dataset, {}).get(measured) for one in (base, record))
                rows += [
                    (run, dataset, f"{measured}/{setting}", *_cell(clean, entry, setting, n_shuffles))
                    for setting in settings
                ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cell(
    clean: Mapping[str, Any] | None, entry: Mapping[str, Any] | None, setting: str, n_shuffles: int
) -> tuple[int, int, int, int, int, float]:
    """COLUMNS from is_missing on, of one entry and that of the clean baseline."""
    is_at_odds = clean is not None and entry is not None and any(clean.get(name) != entry.get(name) for name in SAME)
    if entry is None or entry["left_out"] is not None:
        return int(entry is None), int(is_at_odds), 0, 0, 0, 0.0
    scores = entry["scores"].get(setting)
    if scores is None:
        return 1, int(is_at_odds), 0, 0, 0, 0.0
    values = [value for name in NAMES for value in (scores[name]["mean"], *scores[name]["each"])]
    return (
        0,
        int(is_at_odds),
        1,
        sum(not 0 <= value <= 1 for value in values),
        max(abs(len(scores[name]["each"]) - n_shuffles) for name in NAMES),
        max(abs(scores[name]["mean"] - fmean(scores[name]["each"] or [inf])) for name in NAMES),
    )


def run(
    records: Mapping[str, Mapping[str, Any]], datasets: Sequence[str], n_shuffles: int, out: Path, docs: DataDocs
) -> dict[str, int]:
    """Write the record and return its totals.

    Args:
        records: scores by run; the first is the clean baseline.
        datasets: that there are to be.
        n_shuffles: how often each classifier had to be trained.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from tasks.expectations.evaluation import evaluation_suite
    from tasks.expectations.run import validate

    out.unlink(missing_ok=True)
    frame = cells(records, datasets, n_shuffles)
    verdict = validate("evaluation", evaluation_suite(), frame, docs)
    totals = {"n_runs": len(records), "n_cells": len(frame), "n_scored": int(frame["is_scored"].sum())}
    write_json(verdict.record(totals), out)
    return totals


def main() -> None:
    """Run the stage."""
    params = load_params()
    totals = run(
        read_scores(params.grid),
        sorted(file.stem for file in paths.DOCUMENTS.glob("*.parquet")),
        params.evaluation.shuffles,
        paths.CHECKS / "evaluation.json",
        DataDocs(paths.DATA_DOCS),
    )
    print(f"the scores hold: {totals['n_runs']} runs, {totals['n_scored']:,} of {totals['n_cells']:,} cells scored")


if __name__ == "__main__":
    stage_main(main)
