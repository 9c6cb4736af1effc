"""Judge the budget plans of one strategy: plans/STRATEGY -> checks/plans/STRATEGY/EPSILON.json, or stop.

Of a run at a level of recovery: its plan -> checks/plans/MECHANISM/STRATEGY/rLEVEL.json.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import duckdb

from lexveil import paths
from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import MachineParams, load_params
from lexveil.levels import Level, stage_name
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import named_level, stage_main
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
    shutil.rmtree(out, ignore_errors=True)
    docs.forget(f"plans/{strategy}")
    n_texts = 0
    with duckdb_session.session(machine) as con, atomic_directory(out) as folder:
        for epsilon, plan in plans.items():
            n_texts = judge(con, f"plans/{strategy}/{epsilon}", strategy, plan, folder / f"{epsilon}.json", docs)
    return n_texts


def run_at_level(
    mechanism: str, strategy: str, level: Level, plan: Path, out: Path, docs: DataDocs, machine: MachineParams
) -> int:
    """Write the record of the plan of a run at a level to ``out`` and return the number of texts.

    Raises:
        CheckFailed: if an expectation does not hold; ``out`` is not there then.
    """
    suite = f"plans/{mechanism}/{strategy}/{level}"
    out.unlink(missing_ok=True)
    docs.forget(suite)
    with duckdb_session.session(machine) as con:
        return judge(con, suite, strategy, plan, out, docs, level)


def judge(
    con: duckdb.DuckDBPyConnection,
    suite: str,
    strategy: str,
    plan: Path,
    out: Path,
    docs: DataDocs,
    level: Level | None = None,
) -> int:
    """Write the record of one plan to ``out`` and return the number of texts.

    Raises:
        CheckFailed: if an expectation does not hold.
    """
    # Great Expectations takes seconds to import, and whoever only reads this module does not need it.
    from lexveil.checks.plan_suite import plan_suite
    from lexveil.checks.validation import validate

    duckdb_session.view(con, "plan", plan)
    frame = duckdb_session.run(con, "checks/plan_totals").df()
    verdict = validate(suite, plan_suite(strategy, at_level=level is not None), frame, docs)
    totals = {column: int(frame[column].sum()) for column in ("n_words", "n_tokens", "n_perturbed")}
    write_json(verdict.record({"n_texts": len(frame)} | totals), out)
    return len(frame)


def main() -> None:
    """Run the stage for a strategy, or a run at a level of recovery."""
    params, docs = load_params(), DataDocs(paths.DATA_DOCS)
    strategies = params.grid.strategies
    if len(sys.argv) != 2 or sys.argv[1] not in strategies:
        mechanism, strategy, level = named_level(
            f"give one strategy of params.yaml, grid.strategies: {', '.join(strategies)}; or MECHANISM STRATEGY rLEVEL"
        )
        made_by = stage_name("plan_budgets", mechanism, strategy, level)
        plan = require(paths.plan_of(mechanism, strategy, level), made_by)
        out = paths.plan_check_of(mechanism, strategy, level)
        n_texts = run_at_level(mechanism, strategy, level, plan, out, docs, params.machine)
        print(f"the plan holds: {n_texts:,} texts")
        return
    strategy = sys.argv[1]
    plans = {str(epsilon): require(paths.plan(strategy, epsilon), "plan_budgets") for epsilon in params.grid.epsilons}
    n_texts = run(strategy, plans, paths.CHECKS / "plans" / strategy, docs, params.machine)
    print(f"the plans of {strategy} hold: {len(plans)} base epsilons, {n_texts:,} texts each")


if __name__ == "__main__":
    stage_main(main)
