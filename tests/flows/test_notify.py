"""The webhook: what it is told, what it is never told, and that a dead one costs nothing but a warning."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest
from endpoint import endpoint
from prefect.client.schemas.objects import FlowRun
from prefect.states import Failed
from scratch_project import Project

from flows import notify
from flows.build import build

pytestmark = pytest.mark.slow

API = "http://127.0.0.1:4200/api"


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    logger = logging.getLogger("test-webhook")
    monkeypatch.setattr(logger, "warning", said.append)
    monkeypatch.setattr(notify, "flow_run_logger", lambda *_: logger)
    monkeypatch.setattr(notify.PREFECT_API_URL, "value", lambda: API)
    monkeypatch.delenv(notify.WEBHOOK, raising=False)
    return said


def fail(scheduled: bool = True) -> FlowRun:
    run = FlowRun(id=uuid4(), name="sly-fox", flow_id=uuid4(), deployment_id=uuid4() if scheduled else None)
    notify.on_failure(build, run, Failed(message="check: CheckFailed: 3 of 5 plans do not hold"))
    return run


def test_a_failed_scheduled_run_is_told_and_none_that_somebody_watches(
    project: Project, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail()  # no address by default: nothing goes anywhere
    with endpoint() as server:
        project.set_params("webhook: null", f"webhook: {server.address}/secret-token")
        fail(scheduled=False)
        assert server.requests == []
        run = fail()
        ((path, _, told),) = server.requests
        assert path == "/secret-token"
        assert (told["flow"], told["run"], told["state"]) == ("build", "sly-fox", "Failed")
        assert (told["stage"], told["message"]) == ("check", "CheckFailed: 3 of 5 plans do not hold")
        assert told["link"] == f"{API.removesuffix('/api')}/runs/flow-run/{run.id}" and len(told) == 6
        project.set_params(server.address, "http://127.0.0.1:9/dead")
        monkeypatch.setenv(notify.WEBHOOK, server.address)  # goes before the file
        fail()
    assert len(server.requests) == 2 and warnings == []


def test_a_dead_or_refusing_endpoint_and_broken_params_are_warnings_without_the_address(
    project: Project, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(500) as server:
        monkeypatch.setenv(notify.WEBHOOK, f"{server.address}/secret-token")
        fail()
    fail()
    monkeypatch.delenv(notify.WEBHOOK)
    project.set_params("webhook: null", "webhok: null")
    fail()
    refused, dead, broken = warnings
    assert refused == "the webhook was told and answered 500"
    assert "ConnectError" in dead and "secret" not in dead
    assert "operation.webhok" in broken


@pytest.mark.parametrize(
    ("message", "stage", "told"),
    [
        ("privatize@tem-S1-1.0: RequestError: no such: key", "privatize@tem-S1-1.0", "RequestError: no such: key"),
        ("evaluate@madlib-S1-1.0: KeyError: 'hospital'", "evaluate@madlib-S1-1.0", "KeyError; the run's log says more"),
        ("first: duckdb.IOException: cannot read hospital", "first", "IOException; the run's log says more"),
        ("first: the stage was killed (signal 9)", "first", "the stage was killed (signal 9)"),
        ("Flow run encountered an exception: ValueError: hospital", None, "ValueError; the run's log says more"),
        ("stopped after 60 minutes (params.yaml)", None, "stopped after 60 minutes (params.yaml)"),
    ],
)
def test_no_word_of_a_document_is_told(message: str, stage: str | None, told: str) -> None:
    assert notify.blame(message) == (stage, told)
