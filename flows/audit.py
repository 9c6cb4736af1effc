"""The flow that audits what the nightly release runs and the mechanisms of the grid, by `lexveil audit`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed, Failed
from pydantic import Field

from flows.notify import on_failure
from flows.prefect_records import published
from flows.supervision import TimedCommands, exclusive, timed_out
from lexveil.artifacts.calibrations import epsilon_of
from lexveil.artifacts.model import Model
from lexveil.artifacts.model_store import OWN
from lexveil.config import Params, load_params
from lexveil.levels import Level
from lexveil.paths import AUDITS
from lexveil.privatization.settings import resolve_settings
from lexveil.request import MechanismName, StrategyName
from lexveil.runtime.project import find_root, prepare

Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Words = Annotated[int, Field(ge=2)]
Samples = Annotated[int, Field(ge=200)]


Combination = tuple[str, str, float]  # mechanism, strategy, ε


class AuditRow(TypedDict):
    """One test of an audit, as `lexveil audit` writes it; a test without a figure has neither claim nor bound."""

    place: str
    method: str
    verdict: str
    claimed: NotRequired[float]
    audited: NotRequired[float]


class AuditFile(TypedDict):
    """What this flow reads of the file that `lexveil audit` writes."""

    mechanism: str
    strategy: str
    epsilon: float
    no_guarantee: str | None
    violation: bool
    verdict: NotRequired[str]
    audits: list[AuditRow]


def result_file(mechanism: str, strategy: str, epsilon: float) -> Path:
    """Return where one audit writes its result; of a run at a level under the epsilon that was found for it."""
    return AUDITS / f"{mechanism}-{strategy}-{epsilon}.json"


def audit_command(mechanism: str, strategy: str, epsilon: float, words: int, samples: int, out: Path) -> list[str]:
    """Return the command line of one audit: of the project's own model, also where none was built yet."""
    argv = [sys.executable, "-m", "lexveil.cli", "audit", "--model", OWN]
    argv += ["--mechanism", mechanism, "--strategy", strategy]
    return [*argv, "--epsilon", repr(epsilon), "--words", str(words), "--samples", str(samples), "--out", str(out)]


def _read(file: Path) -> AuditFile:
    result: AuditFile = json.loads(file.read_text(encoding="utf-8"))
    return result


def rows_of(result: AuditFile) -> list[dict[str, object]]:
    """One row per place and method of an audit, for Prefect's table."""
    run = {"mechanism": result["mechanism"], "strategy": result["strategy"], "epsilon": result["epsilon"]}
    return [
        run
        | {
            "where": row["place"],
            "method": row["method"],
            "claimed": row.get("claimed"),
            "audited": row.get("audited"),
            "verdict": row["verdict"],
        }
        for row in result["audits"]
    ]


def _run_audit(commands: TimedCommands, name: str, argv: Sequence[str], out: Path) -> State[Any]:
    """Run one audit as a process of its own, which can be ended, and return how it went."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    ended = commands.run(f"audit-{name}", argv)
    if isinstance(ended, State):
        return ended
    if not out.exists():
        return Failed(
            message=ended.error.message if ended.error else f"the audit ended with code {ended.code} without a result"
        )
    result = _read(out)
    if result["violation"]:
        return Failed(name="Violated", message=f"the claimed ε of {result['epsilon']} is violated")
    return Completed(message="no claim" if result["no_guarantee"] else result.get("verdict", "no violation found"))


def released(params: Params) -> list[Combination]:
    """What the nightly release runs, at its base ε: of params.yaml, of its level or recovery, or B over the average."""
    inbox = params.inbox
    if not inbox.is_on:
        return []
    epsilon = inbox.epsilon
    if inbox.recovery is not None or inbox.protection is not None:
        epsilon = resolve_settings(inbox.request, Model.load(Path(), OWN)).base_epsilon
    if epsilon is None:
        assert inbox.document_budget is not None  # one of the four is given
        epsilon = inbox.document_budget / (params.release.average_words or Model.load(Path(), OWN).average_words())
    return [(inbox.mechanism, inbox.strategy, epsilon)]


def requested_audits(
    params: Params,
    mechanisms: Sequence[str] | None,
    strategies: Sequence[str] | None,
    epsilons: Sequence[float] | None,
) -> list[Combination]:
    """What to audit: what the nightly release runs, unless names or epsilons are given; then the grid, by these.

    The runs of the grid at levels of recovery have the epsilons that the last build found for them.
    """
    grid = params.grid
    combinations = [] if mechanisms or strategies or epsilons else released(params)
    combinations += product(
        mechanisms or grid.mechanisms, strategies or grid.strategies, epsilons or grid.base_epsilons
    )
    if not epsilons:
        combinations += [
            (mechanism, strategy, epsilon_of(mechanism, strategy, level))
            for mechanism, strategy, level in grid.runs()
            if isinstance(level, Level)
            and mechanism in (mechanisms or [mechanism])
            and strategy in (strategies or [strategy])
        ]
    return list(dict.fromkeys(combinations))


@flow(name="audit", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure])
def audit(
    mechanisms: list[MechanismName] | None = None,
    strategies: list[StrategyName] | None = None,
    epsilons: list[Epsilon] | None = None,
    words: Words = 300,
    samples: Samples = 20_000,
) -> State[Any]:
    """Test the privacy that mechanisms claim, with the artifacts of the last build; fails if a claim is violated.

    First what the nightly release runs, if there is one, unless mechanisms, strategies or epsilons are given. Of a run
    at a level of recovery, the epsilon is audited that the last build found for it.

    Args:
        mechanisms: null takes those of the grid in params.yaml.
        strategies: null takes those of the grid.
        epsilons: null takes those of the grid, and those found for its levels; per token, in releases base ε per word.
        words: of the vocabulary, drawn with the seed of params.yaml.
        samples: draws per word of a toy.
    """
    prepare(find_root(Path.cwd()))
    logger = get_run_logger()
    params = load_params()
    requested = requested_audits(params, mechanisms, strategies, epsilons)
    commands = TimedCommands()
    states: dict[Combination, State[Any]] = {}

    @task(
        name="audit",
        task_run_name="{mechanism}-{strategy}-{epsilon}",
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=0,
    )
    def audit_one(mechanism: str, strategy: str, epsilon: float) -> State[Any]:
        out = result_file(mechanism, strategy, epsilon)
        argv = audit_command(mechanism, strategy, epsilon, words, samples, out)
        return _run_audit(commands, f"{mechanism}-{strategy}-{epsilon}", argv, out)

    minutes = params.operation.timeout_minutes
    with exclusive(minutes, commands.stop, logger.info):
        for combination in requested:
            state = states[combination] = audit_one(*combination, return_state=True)
            if not state.is_completed() and state.name != "Violated":
                break
    completed = [
        combination for combination, state in states.items() if state.is_completed() or state.name == "Violated"
    ]
    with published(logger):
        create_table_artifact(
            key="lexveil-audit",
            table=[row for combination in completed for row in rows_of(_read(result_file(*combination)))],
            description=f"{len(completed)} of {len(requested)} audits made",
        )
    return timed_out(minutes) if commands.time_is_up else _verdict(states, completed, len(requested))


def _verdict(states: Mapping[Combination, State[Any]], completed: Sequence[Combination], requested: int) -> State[Any]:
    """Return the state of the flow: failed if a claim is violated or an audit could not be made."""
    violated = [combination for combination in completed if states[combination].name == "Violated"]
    if violated:
        first = "-".join(map(str, violated[0]))
        more = f" (and {len(violated) - 1} more)" if len(violated) > 1 else ""
        return Failed(message=f"audit@{first}: {states[violated[0]].message}{more}")
    if len(completed) < requested:
        combination, state = list(states.items())[-1]
        return Failed(message=f"audit@{'-'.join(map(str, combination))}: {state.message}")
    return Completed(message=f"{len(completed)} audits, no violation found")
