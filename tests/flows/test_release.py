"""The flow `release`: off, done, failed, too long; what Prefect shows of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from unittest import mock

import pytest
from prefect.client.orchestration import get_client
from scratch_project import ROOT, Project

from flows import release as release_flow
from lexveil.config import load_params
from lexveil.inbox.report import ReleaseReport

pytestmark = pytest.mark.slow

REPORT = ReleaseReport(rows=9, new=2, changed=1, duplicate=5, withdrawn=1, released=2, withheld=1).as_dict()


@pytest.fixture(autouse=True)
def environment(project: Project, prefect_server: str) -> Iterator[None]:
    """What a flow puts into the environment ends with its test."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture
def on(project: Project) -> None:
    project.set_params("  source: null ", "  source: inbox ")
    project.set_params("  document_budget: null ", "  document_budget: 40.0 ")


def stand_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(release_flow, "release_command", lambda: [sys.executable, "-c", code])


def table() -> dict[str, object]:
    with get_client(sync_client=True) as client:
        made = [one for one in client.read_artifacts() if one.key == "lexveil-release"]
    rows: list[dict[str, object]] = json.loads(str(max(made, key=lambda one: one.created).data))
    return {str(row["what"]): row["value"] for row in rows}


def test_it_is_off_without_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "raise SystemExit(1)")
    state = release_flow.release(return_state=True)
    assert (state.type.value, state.name) == ("COMPLETED", "Off")


def test_what_it_did_is_an_artifact(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, f"from lexveil.runtime.events import ResultEvent, send; send(ResultEvent({REPORT}))")
    state = release_flow.release(return_state=True)
    said = "2 released, 1 changed, 5 duplicate, 1 withdrawn, 1 withheld"
    assert (state.name, state.message) == ("Completed", said)
    assert table() == {name: "" if value is None else value for name, value in REPORT.items()}


def test_what_fails_says_why(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from lexveil.errors import CheckFailed; from lexveil.runtime.events import send_error; "
    code += "send_error(CheckFailed('releases/x: 2 documents hold what looks like a number')); raise SystemExit(1)"
    stand_in(monkeypatch, code)
    state = release_flow.release(return_state=True)
    assert state.message == "release: releases/x: 2 documents hold what looks like a number"
    assert state.type.value == "FAILED"


def test_what_is_killed_says_so(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "import os; os.kill(os.getpid(), 9)")
    state = release_flow.release(return_state=True)
    assert state.type.value == "FAILED" and "the release ended with code" in state.message


def test_what_takes_too_long_is_ended(on: None, monkeypatch: pytest.MonkeyPatch) -> None:
    params = load_params()
    soon = params.model_copy(update={"operation": params.operation.model_copy(update={"timeout_minutes": 1 / 60})})
    monkeypatch.setattr(release_flow, "load_params", lambda: soon)
    stand_in(monkeypatch, "import time; time.sleep(600)")
    state = release_flow.release(return_state=True)
    assert (state.type.value, state.name) == ("FAILED", "TimedOut")


def test_the_release_that_is_run_is_that_of_the_command_line(project: Project) -> None:
    import subprocess

    done = subprocess.run(
        release_flow.release_command(), cwd=project.root, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("lexveil release: params.yaml: inbox.source and inbox.sql are null")
