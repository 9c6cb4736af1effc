"""The webhook: what it is told, what it is never told, and that a dead one costs nothing but a warning."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.states import Failed
from scratch_project import Project

from flows import notify
from flows.build import build

pytestmark = pytest.mark.slow

API = "http://127.0.0.1:4200/api"


@contextmanager
def endpoint(answer: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook on loopback: its address, and what it is told."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/secret-token", told
        server.shutdown()


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
    with endpoint() as (address, told):
        project.set_params("webhook: null", f"webhook: {address}")
        fail(scheduled=False)
        assert told == []
        run = fail()
        assert told == [
            {
                "flow": "build",
                "run": "sly-fox",
                "state": "Failed",
                "stage": "check",
                "message": "CheckFailed: 3 of 5 plans do not hold",
                "link": f"{API.removesuffix('/api')}/runs/flow-run/{run.id}",
            }
        ]
        project.set_params(address, "http://127.0.0.1:9/dead")
        monkeypatch.setenv(notify.WEBHOOK, address)  # goes before the file
        fail()
    assert len(told) == 2 and warnings == []


def test_a_dead_or_refusing_endpoint_and_broken_params_are_warnings_without_the_address(
    project: Project, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(500) as (address, _):
        monkeypatch.setenv(notify.WEBHOOK, address)
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
        ("check: CheckFailed: 3 of 5 do not hold", "check", "CheckFailed: 3 of 5 do not hold"),
        ("privatize@tem-S1-1.0: RequestError: no such: key", "privatize@tem-S1-1.0", "RequestError: no such: key"),
        ("evaluate@madlib-S1-1.0: KeyError: 'hospital'", "evaluate@madlib-S1-1.0", "KeyError; the run's log says more"),
        ("first: duckdb.IOException: cannot read hospital", "first", "IOException; the run's log says more"),
        ("first: the stage was killed (signal 9)", "first", "the stage was killed (signal 9)"),
        ("audit@tem-S1-1.0: the claimed ε of 1.0 is violated", "audit@tem-S1-1.0", "the claimed ε of 1.0 is violated"),
        ("Flow run encountered an exception: ParameterError: seed: wrong", None, "ParameterError: seed: wrong"),
        ("Flow run encountered an exception: ValueError: hospital", None, "ValueError; the run's log says more"),
        ("stopped after 60 minutes (params.yaml)", None, "stopped after 60 minutes (params.yaml)"),
    ],
)
def test_blame(message: str, stage: str | None, told: str) -> None:
    assert notify.blame(message) == (stage, told)
