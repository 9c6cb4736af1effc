"""Prefect flow "audit", which tests the privacy that the nightly release and the mechanisms of the
grid claim, by running `lexveil audit`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from prefect import State, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed, Failed
from pydantic import Field

from flows.notify import on_failure
from flows.prefect_records import show_table
from flows.supervision import exclusive, run_command, timed_out
from lexveil.base.levels import BaseEpsilon
from lexveil.base.paths import AUDITS
from lexveil.base.runtime.project import find_root, prepare
from lexveil.base.runtime.tables import read_object
from lexveil.core.mechanisms.variants import base_of
from lexveil.io.artifacts.levels import epsilon_of, skipped_run
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.config import Configuration, Params, load_configuration, load_params
from lexveil.io.request import MechanismName, StrategyName
from lexveil.release.settings import resolve_settings

Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Words = Annotated[int, Field(ge=2)]
Samples = Annotated[int, Field(ge=200)]

Combination = tuple[str, str, float]  # mechanism, strategy, ε


def audit_command(combination: Combination, words: int, samples: int, out: Path) -> list[str]:
    """Return the command line that audits one combination of mechanism, strategy and epsilon. The
    audit uses the project's own model even if no model has been packaged yet.
    """
    mechanism, strategy, epsilon = combination
    argv = [sys.executable, "-m", "lexveil.faces.cli", "audit", "--model", OWN]
    argv += ["--mechanism", mechanism, "--strategy", strategy]
    return [
        *argv,
        "--epsilon",
        repr(epsilon),
        "--words",
        str(words),
        "--samples",
        str(samples),
        "--out",
        str(out),
    ]


def released(configuration: Configuration) -> list[Combination]:
    """Return the combination of mechanism, strategy and epsilon that the nightly release uses. Its
    base ε is the ε of lexveil.toml, the ε of its protection level or recovery, or the document
    budget divided by the average length.
    """
    inbox = configuration.inbox
    if not inbox.is_on:
        return []
    epsilon = inbox.epsilon
    if inbox.recovery is not None or inbox.protection is not None:
        epsilon = resolve_settings(inbox.request, Model.load(Path(), OWN)).base_epsilon
    if epsilon is None:
        assert inbox.document_budget is not None  # exactly one of the four settings is given
        epsilon = inbox.document_budget / (
            configuration.release.average_words or Model.load(Path(), OWN).average_words()
        )
    return [(inbox.mechanism, inbox.strategy, epsilon)]


def requested_audits(
    params: Params,
    configuration: Configuration,
    mechanisms: Sequence[str] | None,
    strategies: Sequence[str] | None,
    epsilons: Sequence[float] | None,
) -> list[Combination]:
    """Return the combinations of mechanism, strategy and epsilon to audit: that of the nightly
    release, unless names or epsilons are given, followed by those of the grid, restricted to these
    names and epsilons.

    Runs of the grid at recovery levels have the epsilons that the last build computed for them;
    runs whose level is out of reach are left out.
    """
    grid = params.grid
    made = grid.runs()  # levels are calibrated for these runs only
    noises = [BaseEpsilon(epsilon) for epsilon in epsilons or ()] or grid.epsilons
    runs = product(mechanisms or grid.mechanisms, strategies or grid.strategies, noises)
    combinations = [] if mechanisms or strategies or epsilons else released(configuration)
    combinations += [
        # A variant is audited as its mechanism with the parameters of params.yaml.
        (base_of(run[0]), run[1], epsilon_of(*run))
        for run in runs
        if not run[2].is_level or (run in made and skipped_run(*run) is None)
    ]
    return list(dict.fromkeys(combinations))


def _result_file(name: str) -> Path:
    return AUDITS / f"{name}.json"


@task(name="audit", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False, retries=0)
def audit_one(name: str, command: list[str], until: float) -> State[Any]:
    """Audit one combination in a separate process, which this process can end."""
    out = _result_file(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    _, line = run_command(command, until)
    if not out.exists():
        return Failed(
            message=line.removeprefix("lexveil audit: ") or "the audit ended without a result"
        )
    result = read_object(out)
    if result["violation"]:
        return Failed(name="Violated", message=f"the claimed ε of {result['epsilon']} is violated")
    if result["no_guarantee"]:
        return Completed(message="no claim")
    return Completed(message=result.get("verdict", "no violation found"))


def _rows(name: str) -> Iterator[dict[str, object]]:
    """Yield the table rows about one audit; no row if the audit ended without a result."""
    result = read_object(_result_file(name))
    for row in result.get("audits", ()):
        run = {key: result[key] for key in ("mechanism", "strategy", "epsilon")}
        columns = ("place", "method", "claimed", "audited", "verdict")
        yield run | {column: row.get(column) for column in columns}


@flow(
    name="audit", persist_result=False, retries=0, on_failure=[on_failure], on_crashed=[on_failure]
)
def audit(
    mechanisms: list[MechanismName] | None = None,
    strategies: list[StrategyName] | None = None,
    epsilons: list[Epsilon] | None = None,
    words: Words = 300,
    samples: Samples = 20_000,
) -> State[Any]:
    """Test the privacy that mechanisms claim, with the artifacts of the last build; the flow fails
    if a claim is violated.

    The nightly release is audited first, if there is one, unless mechanisms, strategies or epsilons
    are given. For a run at a recovery level, the audit uses the epsilon that the last build
    computed.

    Args:
        mechanisms: names of mechanisms; null takes the mechanisms of the grid in params.yaml.
        strategies: names of strategies; null takes the strategies of the grid.
        epsilons: epsilons per token; in releases, base epsilons per word. Null takes the epsilons
            of the grid, and the epsilons that were computed for its levels.
        words: number of words of the vocabulary, drawn with the seed of params.yaml.
        samples: number of draws per word of a toy vocabulary.
    """
    prepare(find_root(Path.cwd()))
    requested = requested_audits(
        load_params(), load_configuration(), mechanisms, strategies, epsilons
    )
    states: dict[str, State[Any]] = {}
    with exclusive() as until:
        for combination in requested:
            name = "-".join(map(str, combination))
            command = audit_command(combination, words, samples, _result_file(name))
            state = states[name] = audit_one(name, command, until, return_state=True)
            if not state.is_completed() and state.name != "Violated":
                break
    rows = [row for name in states for row in _rows(name)]
    show_table("lexveil-audit", rows, f"{len(states)} of {len(requested)} audits made")
    return _verdict(states)


def _verdict(states: Mapping[str, State[Any]]) -> State[Any]:
    """Return the final state of the flow: failed if a privacy claim is violated, or if the last
    audit ended without a result.
    """
    failed = {name: state for name, state in states.items() if not state.is_completed()}
    if not failed:
        return Completed(message=f"{len(states)} audits, no violation found")
    name, first = next(iter(failed.items()))
    if first.name == "TimedOut":
        raise timed_out()
    violated = sum(state.name == "Violated" for state in failed.values())
    more = f" (and {violated - 1} more)" if violated > 1 else ""
    return Failed(message=f"audit@{name}: {first.message}{more}")
