"""Notifications of a run: the contents of OpenLineage events and webhook posts. An endpoint that
does not answer causes a warning only.
"""

import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
import yaml
from prefect.client.schemas.objects import FlowRun
from prefect.states import Failed
from scratch_project import Project, run_flow

from flows import notify
from flows.build import build
from lexveil.base.runtime.dvc_graph import StageGraph
from lexveil.lab.lineage.openlineage import Events

pytestmark = pytest.mark.slow

RUN = "0192d3a0-0000-7000-8000-000000000000"
API = "http://127.0.0.1:4200/api"


@contextmanager
def endpoint(answer=200):
    """A server on loopback: its address; and path, key and body of each request."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, self.headers.get("Authorization"), body))
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


def told(events):
    return [(event["job"]["name"], event["eventType"]) for event in events]


RUNS = ["privatize@S1-1.0", "privatize@S2-1.0"]


@dataclass(frozen=True)
class Noted:
    """The OpenLineage events of a run that failed at its check."""

    project: Project
    text: str

    @property
    def events(self):
        return [json.loads(line) for line in self.text.splitlines()]

    def end(self, job):
        """The last event of a job."""
        return [event for event in self.events if event["job"]["name"] == job][-1]


@pytest.fixture(scope="module")
def noted(built_template, worked_once, prefect_server):
    def fail(project):
        project.configure(operation={"openlineage": "events.jsonl"})
        project.set_params("seed: 20261", "seed: 7")
        project.behave("check fail 1")
        project.set_params("min_coverage: 0.5", "min_coverage: 0.6")
        assert run_flow(prefect_server).code == 1
        return Noted(project, (project.root / "events.jsonl").read_text())

    return worked_once(built_template, fail)


def names(datasets):
    return [dataset["name"] for dataset in datasets]


def test_a_run_and_its_stages_begin_and_end_in_a_file(noted):
    first, *events, last = noted.events
    assert told([first, last]) == [("build", "START"), ("build", "FAIL")]
    kinds = [(stage, kind) for stage in RUNS for kind in ("START", "COMPLETE")]
    assert sorted(told(events)) == sorted([*kinds, ("check", "START"), ("check", "FAIL")])


def test_events_of_stages_name_their_run_as_its_notes_do(noted):
    build, *stages, _ = noted.events
    flow = build["run"]["runId"]
    parents = {event["run"]["facets"]["parent"]["run"]["runId"] for event in stages}
    assert parents == {flow}
    notes = json.loads((noted.project.root / ".provenance.json").read_text())["stages"][RUNS[0]]
    task = noted.end(RUNS[0])["run"]["runId"]
    assert (notes["flow_run"], notes["task_run"]) == (flow, task)


def test_an_output_has_the_version_that_dvc_recorded(noted):
    (out,) = noted.end(RUNS[0])["outputs"]
    assert out["name"] == "artifacts/private/S1/1.0"
    (recorded,) = yaml.safe_load(noted.project.lock())["stages"][RUNS[0]]["outs"]
    assert out["facets"]["version"]["datasetVersion"] == recorded["md5"]


def test_a_folder_that_is_read_is_the_datasets_that_its_makers_name(noted):
    """Code is no dataset."""
    counts = ["artifacts/counts/a.txt", "artifacts/counts/b.txt"]
    assert names(noted.end(RUNS[0])["inputs"]) == counts
    outputs = [dataset for stage in RUNS for dataset in noted.end(stage)["outputs"]]
    assert sorted(names(noted.end("check")["inputs"])) == sorted(names(outputs))


def test_a_failure_is_told_with_its_message_and_no_output(noted):
    check = noted.end("check")
    message = check["run"]["facets"]["errorMessage"]["message"]
    assert message == "CheckFailedError: check does not hold; the limit is 3"
    assert check["outputs"] == []


def test_events_have_no_path_of_the_machine_and_no_seed(noted):
    assert not [word for word in (str(noted.project.root), "20261") if word in noted.text]


@pytest.mark.parametrize(("answer", "n_requests"), [(201, 2), (500, 1), (None, 0)])
def test_a_dead_endpoint_is_one_warning(project, monkeypatch, answer, n_requests):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "k")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    warnings = []
    with endpoint(answer or 201) as (address, requests):
        events = Events(
            address if answer else "http://127.0.0.1:9", RUN, StageGraph({}), warnings.append
        )
        events.begin()
        events.end("ran")
    assert len(warnings) == (n_requests < 2)
    assert [request[:2] for request in requests] == [("/api/v1/lineage", "Bearer k")] * n_requests


@pytest.fixture
def warnings(monkeypatch):
    said = []
    logger = logging.getLogger("test-webhook")
    monkeypatch.setattr(logger, "warning", said.append)
    monkeypatch.setattr(notify, "flow_run_logger", lambda *_: logger)
    monkeypatch.setattr(notify.PREFECT_API_URL, "value", lambda: API)
    monkeypatch.delenv(notify.WEBHOOK, raising=False)
    return said


def fail(scheduled=True):
    run = FlowRun(
        id=uuid4(), name="sly-fox", flow_id=uuid4(), deployment_id=uuid4() if scheduled else None
    )
    notify.on_failure(
        build, run, Failed(message="check: CheckFailedError: 3 of 5 plans do not hold")
    )
    return run


def test_a_failed_scheduled_run_is_told_and_none_that_somebody_watches(
    project, warnings, monkeypatch
):
    fail()  # no address by default: nothing goes anywhere
    with endpoint() as (address, requests):
        project.configure(operation={"webhook": f"{address}/secret-token"})
        fail(scheduled=False)
        assert requests == []
        run = fail()
        ((path, _, told),) = requests
        assert path == "/secret-token"
        assert (told["flow"], told["run"], told["state"]) == ("build", "sly-fox", "Failed")
        assert (told["stage"], told["message"]) == (
            "check",
            "CheckFailedError: 3 of 5 plans do not hold",
        )
        assert (
            told["link"] == f"{API.removesuffix('/api')}/runs/flow-run/{run.id}" and len(told) == 6
        )
        project.configure(operation={"webhook": "http://127.0.0.1:9/dead"})
        monkeypatch.setenv(notify.WEBHOOK, address)  # goes before the file
        fail()
    assert len(requests) == 2 and warnings == []


def test_a_dead_or_refusing_endpoint_and_broken_params_are_warnings_without_the_address(
    project, warnings, monkeypatch
):
    with endpoint(500) as (address, _):
        monkeypatch.setenv(notify.WEBHOOK, f"{address}/secret-token")
        fail()
    fail()
    monkeypatch.delenv(notify.WEBHOOK)
    (project.root / "lexveil.toml").write_text("[operation]\nwebhok = 1\n")
    fail()
    refused, dead, broken = warnings
    assert refused == "the webhook received the notification, but answered 500"
    assert "ConnectError" in dead and "secret" not in dead
    assert "operation.webhok" in broken


@pytest.mark.parametrize(
    ("message", "stage", "told"),
    [
        (
            "privatize@tem-S1-1.0: RequestError: no such: key",
            "privatize@tem-S1-1.0",
            "RequestError: no such: key",
        ),
        (
            "evaluate@madlib-S1-1.0: KeyError: 'hospital'",
            "evaluate@madlib-S1-1.0",
            "KeyError; see the run's log",
        ),
        (
            "first: duckdb.IOException: cannot read hospital",
            "first",
            "IOException; see the run's log",
        ),
        ("first: the stage was killed (signal 9)", "first", "the stage was killed (signal 9)"),
        (
            "Flow run encountered an exception: ValueError: hospital",
            None,
            "ValueError; see the run's log",
        ),
        (
            "stopped after 60 minutes (lexveil.toml)",
            None,
            "stopped after 60 minutes (lexveil.toml)",
        ),
    ],
)
def test_no_word_of_a_document_is_told(message, stage, told):
    assert notify.blame(message) == (stage, told)
