"""Judge the budget plans of one strategy: plans/STRATEGY -> checks/plans/STRATEGY/EPSILON.json, or stop."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import MachineParams, load_params
from lexveil.errors import RequestError
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import atomic_directory, require, write_json


def run(strategy: str, plans: dict[str, Path], out: Path, docs: DataDocs, machine: MachineParams) -> int:
    """Write one record per plan into folder ``out`` and return the number of texts.

    A record says nothing about the other plans: a new epsilon leaves the bytes of the others as they are.

    Args:
        strategy: S1 to S4.
        plans: file by base epsilon, written as in params.yaml.

    Raises:
        CheckFailed: if an expectation does not hold in one of them; ``out`` is not there then.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.plan_suite import plan_suite
    from lexveil.checks.validation import validate

    shutil.rmtree(out, ignore_errors=True)
    docs.forget(f"plans/{strategy}")
    n_texts = 0
    with duckdb_session.session(machine) as con, atomic_directory(out) as folder:
        for epsilon, plan in plans.items():
            duckdb_session.view(con, "plan", plan)
            frame = duckdb_session.run(con, "checks/plan_totals").df()
            verdict = validate(f"plans/{strategy}/{epsilon}", plan_suite(strategy), frame, docs)
            n_texts = len(frame)
            summary = {"n_texts": n_texts} | {
                column: int(frame[column].sum()) for column in ("n_words", "n_tokens", "n_perturbed")
            }
            write_json(verdict.record(summary), folder / f"{epsilon}.json")
    return n_texts


def main() -> None:
    """Run the stage."""
    params = load_params()
    if len(sys.argv) != 2 or sys.argv[1] not in params.grid.strategies:
        raise RequestError(f"give one strategy of params.yaml, grid.strategies: {', '.join(params.grid.strategies)}")
    strategy = sys.argv[1]
    plans = {str(epsilon): require(paths.plan(strategy, epsilon), "plan_budgets") for epsilon in params.grid.epsilons}
    n_texts = run(strategy, plans, paths.CHECKS / "plans" / strategy, DataDocs(paths.DATA_DOCS), params.machine)
    print(f"the plans of {strategy} hold: {len(plans)} base epsilons, {n_texts:,} texts each")


if __name__ == "__main__":
    stage_main(main)
