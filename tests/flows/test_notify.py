"""The webhook: what it is told, what it is never told, and that a dead one costs nothing but a warning."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
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


class Endpoint(ThreadingHTTPServer):
    """A webhook on loopback that keeps what it is told."""

    def __init__(self, answer: int = 200) -> None:
        self.told: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(answer)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/secret-token"


@pytest.fixture
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    with Endpoint(getattr(request, "param", 200)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def warnings(prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    logger = logging.getLogger("test-webhook")
    monkeypatch.setattr(logger, "warning", said.append)
    monkeypatch.setattr(notify, "flow_run_logger", lambda *_: logger)
    monkeypatch.delenv(notify.WEBHOOK, raising=False)
    return said


def fail(message: str = "check: CheckFailed: 3 of 5 plans do not hold", scheduled: bool = True) -> FlowRun:
    run = FlowRun(id=uuid4(), name="sly-fox", flow_id=uuid4(), deployment_id=uuid4() if scheduled else None)
    notify.on_failure(build, run, Failed(message=message))
    return run


def test_a_failed_scheduled_run_is_told(
    project: Project, endpoint: Endpoint, warnings: list[str], prefect_server: str
) -> None:
    project.set_params("webhook: null", f"webhook: {endpoint.address}")
    run = fail()
    assert endpoint.told == [
        {
            "flow": "build",
            "run": "sly-fox",
            "state": "Failed",
            "stage": "check",
            "message": "CheckFailed: 3 of 5 plans do not hold",
            "link": f"{prefect_server.removesuffix('/api')}/runs/flow-run/{run.id}",
        }
    ]
    assert warnings == []


def test_nothing_is_sent_by_default_nor_of_a_run_that_somebody_watches(
    project: Project, endpoint: Endpoint, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify.httpx, "Client", lambda **_: pytest.fail("it went online"))
    fail()
    project.set_params("webhook: null", f"webhook: {endpoint.address}")
    fail(scheduled=False)
    assert (endpoint.told, warnings) == ([], [])


def test_the_environment_goes_before_the_file(
    project: Project, endpoint: Endpoint, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.set_params("webhook: null", "webhook: http://127.0.0.1:9/dead")
    monkeypatch.setenv(notify.WEBHOOK, endpoint.address)
    fail()
    assert len(endpoint.told) == 1 and warnings == []


def test_a_dead_endpoint_is_a_warning_without_its_address(project: Project, warnings: list[str]) -> None:
    with Endpoint() as gone:
        address = gone.address
    project.set_params("webhook: null", f"webhook: {address}")
    fail()
    (warning,) = warnings
    assert "ConnectError" in warning and "secret" not in warning


@pytest.mark.parametrize("endpoint", [500], indirect=True)
def test_an_endpoint_that_refuses_is_a_warning(project: Project, endpoint: Endpoint, warnings: list[str]) -> None:
    project.set_params("webhook: null", f"webhook: {endpoint.address}")
    fail()
    assert warnings == ["the webhook was told and answered 500"]


def test_a_broken_params_file_is_a_warning(project: Project, warnings: list[str]) -> None:
    project.set_params("webhook: null", "webhok: null")
    fail()
    (warning,) = warnings
    assert "operation.webhok" in warning


@pytest.mark.parametrize(
    ("message", "stage", "told"),
    [
        ("check: CheckFailed: 3 of 5 do not hold", "check", "CheckFailed: 3 of 5 do not hold"),
        (
            "privatize@madlib-S1-1.0: RequestError: no such: key",
            "privatize@madlib-S1-1.0",
            "RequestError: no such: key",
        ),
        ("evaluate@madlib-S1-1.0: KeyError: 'hospital'", "evaluate@madlib-S1-1.0", "KeyError; the run's log says more"),
        ("first: duckdb.IOException: cannot read hospital", "first", "IOException; the run's log says more"),
        ("first: the stage was killed (signal 9)", "first", "the stage was killed (signal 9)"),
        ("audit@tem-S1-1.0: the claimed ε of 1.0 is violated", "audit@tem-S1-1.0", "the claimed ε of 1.0 is violated"),
        ("Flow run encountered an exception: ParameterError: seed: wrong", None, "ParameterError: seed: wrong"),
        ("Flow run encountered an exception: ValueError: hospital", None, "ValueError; the run's log says more"),
        ("Flow run encountered an exception: ValueError", None, "ValueError; the run's log says more"),
        ("stopped after 60 minutes (params.yaml)", None, "stopped after 60 minutes (params.yaml)"),
        ("", None, ""),
    ],
)
def test_blame(message: str, stage: str | None, told: str) -> None:
    assert notify.blame(message) == (stage, told)
