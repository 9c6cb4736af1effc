"""The flows as a server starts them: time limit, what is tried again, audits. In this process, without a schedule."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from prefect.client.orchestration import get_client
from prefect.task_engine import run_task_sync
from scratch_project import Project

from flows import audit as audit_flow
from flows import build as build_flow
from flows.data_bootstrap import DataUnreachable
from flows.process import Command
from lexveil.config import load_params, parse_params
from lexveil.errors import RequestError
from lexveil.levels import Level
from lexveil.privatization.settings import Request
from lexveil.runtime.events import ErrorEvent

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def environment(project: Project, prefect_server: str) -> Iterator[None]:
    """A project with data; what a flow puts into the environment ends with its test."""
    (project.root / "data").mkdir()
    (project.root / "data/any.txt").touch()
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture
def in_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is up after a second; params.yaml allows nothing below a minute."""

    def soon() -> object:
        params = load_params()
        return params.model_copy(update={"operation": params.operation.model_copy(update={"timeout_minutes": 1 / 60})})

    for module in (build_flow, audit_flow):
        monkeypatch.setattr(module, "load_params", soon)


def test_a_build_that_takes_too_long_is_stopped_and_the_next_continues(built: Project, in_a_moment: None) -> None:
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check wait 600")
    state = build_flow.build(return_state=True)
    assert (state.type.value, state.name) == ("FAILED", "TimedOut")
    assert "operation.timeout_minutes" in state.message
    built.behave()
    built.ran()
    with mock.patch.object(build_flow, "load_params", load_params):
        state = build_flow.build(return_state=True)
    assert state.name == "Completed" and built.ran() == ["check"]


def test_without_a_limit_no_timer_runs() -> None:
    with build_flow.time_limit(None, lambda: pytest.fail("stopped")):
        pass
    with build_flow.time_limit(1e-9, lambda: None):
        pass


@pytest.mark.parametrize(("error", "tries"), [(DataUnreachable, 3), (RequestError, 1)])
def test_only_a_remote_that_cannot_be_reached_is_tried_again(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch, error: type[RequestError], tries: int
) -> None:
    asked: list[int] = []

    def fail(_: object) -> None:
        asked.append(1)
        raise error("data/ is absent")

    monkeypatch.setattr(build_flow, "ensure_data", fail)
    state = run_task_sync(build_flow.bring_data.with_options(retry_delay_seconds=0), return_type="state")
    assert state.is_failed() and len(asked) == tries


def test_a_failed_stage_is_not_tried_again(built: Project, prefect_server: str) -> None:
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check fail 1")
    state = build_flow.build(return_state=True)
    assert state.message == "check: CheckFailed: check does not hold; the limit is 3"
    assert built.ran() == ["check"]


# Stands for `lexveil audit`: writes a result as lexveil.auditing.audit does, or ends with an error.
STAND_IN = """
import json, sys, time
from lexveil.errors import RequestError
from lexveil.runtime.events import send_error
mechanism, strategy, epsilon, out = sys.argv[1:]
if mechanism == "vickrey":
    send_error(RequestError("--mechanism vickrey: there is no such space"), 2)
    sys.exit(2)
if mechanism == "mahalanobis":
    time.sleep(600)
violation = mechanism == "tem"
print("audit, toy: 5 of 10 draws at most", file=sys.stderr)
row = {"place": "toy", "method": "exact", "claimed": 1.0, "audited": 2.0 if violation else 0.5,
       "violation": violation, "verdict": "VIOLATED" if violation else "holds"}
json.dump({"mechanism": mechanism, "strategy": strategy, "epsilon": float(epsilon), "no_guarantee": None,
           "audits": [row], "violation": violation}, open(out, "w"))
sys.exit(int(violation))
"""


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        audit_flow,
        "audit_command",
        lambda mechanism, strategy, epsilon, words, samples, out: [
            sys.executable, "-c", STAND_IN, mechanism, strategy, str(epsilon), str(out)
        ],
    )  # fmt: skip


def audit_table() -> list[dict[str, object]]:
    with get_client(sync_client=True) as client:
        made = [one for one in client.read_artifacts() if one.key == "lexveil-audit"]
    import json

    table: list[dict[str, object]] = json.loads(str(max(made, key=lambda one: one.created).data))
    return table


def test_the_grid_is_audited_and_the_report_is_an_artifact(stand_in: None) -> None:
    state = audit_flow.audit(return_state=True)
    assert (state.name, state.message) == ("Completed", "2 audits, no violation found")
    assert audit_table() == [
        {
            "mechanism": "madlib",
            "strategy": strategy,
            "epsilon": 1.0,
            "where": "toy",
            "method": "exact",
            "claimed": 1.0,
            "audited": 0.5,
            "verdict": "holds",
        }
        for strategy in ("S1", "S2")
    ]


def test_levels_are_audited_at_the_epsilons_found_for_them(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    params = load_params()
    grid = params.grid.model_copy(update={"epsilons": [Level(0.05), Level(0.5)]})
    params = params.model_copy(update={"grid": grid})
    monkeypatch.setattr(audit_flow, "load_params", lambda: params)
    found = {0.05: 4.0, 0.5: 9.0}
    monkeypatch.setattr(audit_flow, "epsilon_of", lambda mechanism, strategy, level: found[level.share])
    assert audit_flow.audit(return_state=True).name == "Completed"
    assert [(row["strategy"], row["epsilon"]) for row in audit_table()] == [
        ("S1", 4.0), ("S1", 9.0), ("S2", 4.0), ("S2", 9.0)
    ]  # fmt: skip
    assert audit_flow.requested_audits(params, ["tem"], None, None) == []  # none was made of it
    of_s2 = [("madlib", "S2", 4.0), ("madlib", "S2", 9.0)]
    assert audit_flow.requested_audits(params, None, ["S2"], None) == of_s2


def test_a_nightly_release_by_recovery_is_audited_at_its_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def resolved(options: Request, model: object) -> SimpleNamespace:
        asked.append(options)
        return SimpleNamespace(epsilon=4.5)

    monkeypatch.setattr(audit_flow, "resolve_settings", resolved)
    monkeypatch.setattr(audit_flow.Model, "load", lambda *_: None)
    inbox = {"sql": "select 1", "recovery": 0.2, "band": "content"}
    assert audit_flow.released(parse_params({"seed": 1, "inbox": inbox})) == [("tem", "S3", 4.5)]
    assert (asked[0].recovery, asked[0].band) == (0.2, "content")
    by_level = {"sql": "select 1", "protection": "strong"}
    assert audit_flow.released(parse_params({"seed": 1, "inbox": by_level})) == [("tem", "S3", 4.5)]
    assert asked[1].level == "strong"


@pytest.mark.parametrize(
    ("params", "audited"),
    [
        ({}, []),
        ({"inbox": {"source": "inbox", "mechanism": "tem", "strategy": "S3", "epsilon": 2.5}}, [("tem", "S3", 2.5)]),
        (
            {"inbox": {"sql": "select 1", "document_budget": 60.0}, "release": {"average_words": 20.0}},
            [("tem", "S3", 3.0)],
        ),
    ],
)
def test_what_the_nightly_release_runs_is_audited(
    params: dict[str, Any], audited: list[tuple[str, str, float]]
) -> None:
    """At its base epsilon, also where its document budget is given."""
    assert audit_flow.released(parse_params({"seed": 1} | params)) == audited


def test_a_violated_claim_fails_the_run_after_all_audits(stand_in: None) -> None:
    state = audit_flow.audit(["tem", "madlib"], ["S1"], [2.0, 3.0], return_state=True)
    assert (state.name, state.message) == ("Failed", "audit@tem-S1-2.0: the claimed ε of 2.0 is violated (and 1 more)")
    assert [(row["mechanism"], row["epsilon"], row["verdict"]) for row in audit_table()] == [
        ("tem", 2.0, "VIOLATED"),
        ("tem", 3.0, "VIOLATED"),
        ("madlib", 2.0, "holds"),
        ("madlib", 3.0, "holds"),
    ]


def test_an_audit_that_cannot_be_made_fails_the_run_at_once(stand_in: None) -> None:
    state = audit_flow.audit(["vickrey", "madlib"], ["S1"], return_state=True)
    assert (state.name, state.message) == (
        "Failed",
        "audit@vickrey-S1-1.0: --mechanism vickrey: there is no such space",
    )


def test_an_audit_that_takes_too_long_is_ended(stand_in: None, in_a_moment: None) -> None:
    state = audit_flow.audit(["mahalanobis"], ["S1"], return_state=True)
    assert (state.type.value, state.name) == ("FAILED", "TimedOut")


def test_an_audit_that_is_refused_sends_its_reason(project: Project) -> None:
    argv = audit_flow.audit_command("tem", "S3", 10.0, 20, 400, project.root / "out.json")
    command = Command(argv, os.environ)  # nothing is built here
    (error,) = (event for event in command.messages() if isinstance(event, ErrorEvent))
    assert command.wait() == error.exit_code
    assert error.message and "lexveil audit" not in error.message


def test_the_audit_that_is_run_is_that_of_the_command_line(project: Project) -> None:
    from lexveil.auditing.request import AuditRequest
    from lexveil.cli.main import parse
    from lexveil.cli.options import requested

    argv = audit_flow.audit_command("tem", "S3", 10.0, 20, 400, project.root / "out.json")
    assert argv[:3] == [sys.executable, "-m", "lexveil.cli"]
    asked = parse(argv[3:])[1].arguments
    request = requested(asked["how"], AuditRequest)
    assert (request.mechanism, request.strategy, request.epsilon, asked["words"].name) == ("tem", "S3", 10.0, "own")
    assert (request.words, request.samples, asked["out"]) == (20, 400, project.root / "out.json")
