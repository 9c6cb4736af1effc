"""Pipeline stage that checks the evaluation scores of every run of the grid, and of the clean
baseline (texts that were not rewritten): evaluation/** -> checks/evaluation.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lexveil.base import paths
from lexveil.base.levels import stage_name
from lexveil.base.runtime.tables import read_json, write_json
from lexveil.io.artifacts.levels import made_runs, made_sentence_runs
from lexveil.io.config import CLEAN, EvaluationParams, GridParams, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.checks.evaluation_cells import cells, not_above_majority
from lexveil.release.checks.data_docs import DataDocs


def read_scores(grid: GridParams) -> dict[str, dict[str, object]]:
    """Read the evaluation scores by run: first the clean baseline, then the runs of params.yaml
    that were made.

    Raises:
        MissingArtifactError: if a run was not evaluated.
    """
    return {
        "/".join(map(str, run)): read_json(
            paths.evaluation(*run),
            "evaluate_baseline" if run[0] == "none" else stage_name("evaluate", *run),
        )
        for run in [CLEAN, *made_runs(grid.runs()), *made_sentence_runs(grid.sentence_runs())]
    }


def run(
    records: Mapping[str, Mapping[str, Any]],
    datasets: Sequence[str],
    settings: EvaluationParams,
    out: Path,
    docs: DataDocs,
) -> dict[str, Any]:
    """Check the evaluation scores, write the record of the check to ``out``, and return its
    summary.

    Args:
        records: scores by run; the first run is the clean baseline.
        datasets: names of the data sets that every run must have.
        settings: the back ends, and the number of trainings of each classifier.
        out: file of the record.
        docs: folder for the pages.

    Raises:
        CheckFailedError: if an expectation does not hold; ``out`` then does not exist.
    """
    # Great Expectations takes seconds to import.
    from lexveil.lab.checks.evaluation_suite import evaluation_suite
    from lexveil.release.checks.validation import validate

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
    """Run this stage of the DVC pipeline: check the evaluation scores."""
    params = load_params()
    summary = run(
        read_scores(params.grid),
        sorted(file.stem for file in paths.DOCUMENTS.glob("*.parquet")),
        params.evaluation,
        paths.CHECKS / "evaluation.json",
        DataDocs(paths.DATA_DOCS),
    )
    print(
        f"the scores are valid: {summary['n_runs']} runs, {summary['n_scored']:,} of "
        f"{summary['n_cells']:,} scores exist"
    )
    if summary["not_above_majority"]:
        print(
            "on clean texts not better than the majority-class baseline: "
            f"{', '.join(summary['not_above_majority'])}"
        )


if __name__ == "__main__":
    stage_main(main)
