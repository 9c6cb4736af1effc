"""The flow that tests what the mechanisms of the grid claim, by the audit that `lexveil audit` makes."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Cancelled, Completed, Failed
from pydantic import Field

from flows.build import FLOW_RUN, note_run, published, time_limit, timed_out
from flows.notify import on_failure
from flows.process import Command
from flows.stage_progress import ProgressPage
from lexveil.config import MechanismName, StrategyName, load_params
from lexveil.paths import AUDITS
from lexveil.runtime.project import build_lock, find_root, prepare, stage_environment

SAYS = "lexveil audit: "  # before the line by which the command says what went wrong

Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Words = Annotated[int, Field(ge=2)]
Samples = Annotated[int, Field(ge=200)]


class Audits:
    """The audits of one flow run: the one that runs, and whether time is up."""

    def __init__(self) -> None:
        self.running: Command | None = None
        self.time_is_up = False

    def stop(self) -> None:
        """End the audit that runs; none begins any more."""
        self.time_is_up = True
        if self.running is not None:
            self.running.signal(signal.SIGKILL)  # it has written nothing yet, or all


def result_file(mechanism: str, strategy: str, epsilon: float) -> Path:
    """Return where one audit writes what it found."""
    return AUDITS / f"{mechanism}-{strategy}-{epsilon}.json"


def audit_command(mechanism: str, strategy: str, epsilon: float, words: int, samples: int, out: Path) -> list[str]:
    """Return the command line of one audit."""
    argv = [sys.executable, "-m", "lexveil.cli", "audit", "--mechanism", mechanism, "--strategy", strategy]
    return [*argv, "--epsilon", repr(epsilon), "--words", str(words), "--samples", str(samples), "--out", str(out)]


def rows_of(result: dict[str, Any]) -> list[dict[str, object]]:
    """One row per place and method of an audit, for Prefect's table."""
    return [
        {
            "mechanism": result["mechanism"],
            "strategy": result["strategy"],
            "epsilon": result["epsilon"],
            "where": row["place"],
            "method": row["method"],
            "claimed": row.get("claimed"),
            "audited": row.get("audited"),
            "verdict": row["verdict"],
        }
        for row in result["audits"]
    ]


def _make(audits: Audits, mechanism: str, strategy: str, epsilon: float, words: int, samples: int) -> State[Any]:
    """Run one audit as a process of its own, which can be ended, and say how it went."""
    logger = get_run_logger()
    out = result_file(mechanism, strategy, epsilon)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    argv = audit_command(mechanism, strategy, epsilon, words, samples, out)
    if audits.time_is_up:
        return Cancelled(name="NotRun", message="the run was stopped")
    command = audits.running = Command(argv, stage_environment())
    progress = ProgressPage(f"audit-{mechanism}-{strategy}-{epsilon}")
    said = ""
    try:
        for _, line in command.lines():
            logger.info(line)
            progress.hear(line)
            said = line.removeprefix(SAYS) if line.startswith(SAYS) else said
    finally:
        audits.running = None
        progress.close()
        command.signal(signal.SIGKILL)  # only where an interrupt left the loop
        code = command.wait()
    if audits.time_is_up:
        return Cancelled(name="Stopped", message="the run was stopped")
    if not out.exists():
        return Failed(message=said or f"the audit ended with code {code} before it had a result")
    result = json.loads(out.read_text(encoding="utf-8"))
    if result["violation"]:
        return Failed(name="Violated", message=f"the claimed ε of {epsilon} is violated")
    return Completed(message="no claim" if result["no_guarantee"] else "no violation found")


@flow(name="audit", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure])
def audit(
    mechanisms: list[MechanismName] | None = None,
    strategies: list[StrategyName] | None = None,
    epsilons: list[Epsilon] | None = None,
    words: Words = 300,
    samples: Samples = 20_000,
) -> State[Any]:
    """Test the privacy that mechanisms claim, with the artifacts of the last build; fails if a claim is violated.

    Args:
        mechanisms: null takes those of the grid in params.yaml.
        strategies: null takes those of the grid.
        epsilons: null takes those of the grid; per token, in texts base ε per word.
        words: of the vocabulary, drawn with the seed of params.yaml.
        samples: draws per word or text, half of them tested.
    """
    prepare(find_root(Path.cwd()))
    logger = get_run_logger()
    params = load_params()
    asked = list(
        product(
            mechanisms or params.grid.mechanisms,
            strategies or params.grid.strategies,
            epsilons or params.grid.epsilons,
        )
    )
    audits = Audits()
    states: dict[tuple[str, str, float], State[Any]] = {}

    @task(
        name="audit",
        task_run_name="{mechanism}-{strategy}-{epsilon}",
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=0,
    )
    def one(mechanism: str, strategy: str, epsilon: float) -> State[Any]:
        return _make(audits, mechanism, strategy, epsilon, words, samples)

    minutes = params.operation.timeout_minutes
    # No build may change the artifacts meanwhile.
    with build_lock(wait=True, say=logger.info), time_limit(minutes, audits.stop):
        note_run(logger.info)
        for which in asked:
            states[which] = one(*which, return_state=True)
            if not states[which].is_completed() and states[which].name != "Violated":
                break
        FLOW_RUN.unlink(missing_ok=True)
    made = [which for which, state in states.items() if state.is_completed() or state.name == "Violated"]
    with published(logger):
        create_table_artifact(
            key="lexveil-audit", table=list(_table(made)), description=f"{len(made)} of {len(asked)} audits made"
        )
    if audits.time_is_up:
        return timed_out(minutes)
    violated = [which for which in made if states[which].name == "Violated"]
    if violated:
        first = "-".join(map(str, violated[0]))
        more = f" (and {len(violated) - 1} more)" if len(violated) > 1 else ""
        return Failed(message=f"audit@{first}: {states[violated[0]].message}{more}")
    if len(made) < len(asked):
        last = "-".join(map(str, list(states)[-1]))
        return Failed(message=f"audit@{last}: {list(states.values())[-1].message}")
    return Completed(message=f"{len(made)} audits, no violation found")


def _table(made: Iterable[tuple[str, str, float]]) -> Iterable[dict[str, object]]:
    for which in made:
        yield from rows_of(json.loads(result_file(*which).read_text(encoding="utf-8")))
