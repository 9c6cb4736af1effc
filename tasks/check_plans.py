"""Pipeline stage that checks the privacy budget plan of every run, and fails if a plan is not
valid: plans/**/plan.parquet -> checks/plans/MECHANISM/STRATEGY/EPSILON.json.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lexveil.base import paths
from lexveil.base.levels import NoiseSetting
from lexveil.base.runtime.tables import atomic_directory, require, write_json
from lexveil.io.artifacts.levels import made_runs, skipped_run
from lexveil.io.config import GridParams, MachineParams, load_configuration, load_params
from lexveil.io.execution import duckdb_session
from lexveil.io.execution.stage import stage_main
from lexveil.release.checks.data_docs import DataDocs


def run(grid: GridParams, out: Path, docs: DataDocs, machine: MachineParams) -> int:
    """Check every budget plan, write one record per plan into folder ``out``, and return the number
    of texts. The record of a skipped run states the reason.

    A record is about one plan only, so that a new epsilon does not change the bytes of other
    records. At a base epsilon all mechanisms have the same plan, which is checked once.

    Raises:
        CheckFailedError: if an expectation does not hold for a plan; ``out`` then does not exist.
    """
    # Great Expectations takes seconds to import; importers of this module do not need it.
    from lexveil.lab.checks.plan_suite import plan_suite
    from lexveil.release.checks.validation import validate

    shutil.rmtree(out, ignore_errors=True)
    docs.forget("plans")
    n_texts = 0
    judged = dict[tuple[str, NoiseSetting], Path]()
    with duckdb_session.session(machine) as con, atomic_directory(out) as folder:
        for mechanism, strategy, noise in grid.runs():
            record = folder / mechanism / strategy / f"{noise}.json"
            record.parent.mkdir(parents=True, exist_ok=True)
            if skipped := skipped_run(mechanism, strategy, noise):
                write_json(skipped.to_dict(), record)
                continue
            if not noise.is_level and (known := judged.get((strategy, noise))):
                shutil.copyfile(known, record)
                continue
            judged[strategy, noise] = record
            named = (mechanism, strategy) if noise.is_level else (strategy,)
            suite = "/".join(("plans", *named, str(noise)))
            duckdb_session.view(
                con, "plan", require(paths.plan(mechanism, strategy, noise), "plan_budgets")
            )
            frame = duckdb_session.run(con, "checks/plan_totals").df()
            expected = plan_suite(strategy, is_per_token=grid.is_per_token(noise))
            verdict = validate(suite, expected, frame, docs)
            n_texts = len(frame)
            totals = {
                column: int(frame[column].sum())
                for column in ("n_words", "n_tokens", "n_perturbed")
            }
            write_json(verdict.record({"n_texts": n_texts} | totals), record)
    return n_texts


def main() -> None:
    """Run this stage of the DVC pipeline: check the budget plans."""
    params = load_params()
    n_texts = run(
        params.grid, paths.CHECKS / "plans", DataDocs(paths.DATA_DOCS), load_configuration().machine
    )
    n_runs = len(made_runs(params.grid.runs()))
    print(f"the plans are valid: {n_runs} runs, {n_texts:,} texts each")


if __name__ == "__main__":
    stage_main(main)
