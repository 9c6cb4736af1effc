"""OpenLineage events: what goes out, where to, and that a dead endpoint costs a warning and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from scratch_project import Project, Run

from lexveil.config import load_params
from lexveil.errors import ParameterError
from lexveil.lineage.openlineage import Events
from lexveil.runtime.dvc_graph import open_repo, read_graph
from lexveil.runtime.run_events import StageResult

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict], list[int]]]:
    """A server on loopback: its address, the events that came, and a list whose first entry is what it answers."""
    events: list[dict] = []
    answer = [201]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            events.append({"path": self.path, "key": self.headers.get("Authorization"), "event": json.loads(body)})
            self.send_response(answer[0])
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", events, answer
    http.shutdown()
    thread.join()
    http.server_close()


def send_to(project: Project, target: str) -> None:
    project.set_params("openlineage: null", f"openlineage: {target}")


def told(events: list[dict]) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in events]


def test_nothing_goes_anywhere_by_default(template: Path, first_run: tuple[Path, Run]) -> None:
    before = {path.name for path in template.iterdir()}
    made = {path.name for path in first_run[0].iterdir()} - before
    assert made == {"artifacts", "dvc.lock", "ran.log", ".lexveil", ".provenance.json"}


def test_a_run_in_a_file(built: Project, run) -> None:
    assert load_params().operation.openlineage is None
    send_to(built, "events.jsonl")
    built.set_params("seed: 20261", "seed: 7")
    assert run().code == 0
    events = [json.loads(line) for line in (built.root / "events.jsonl").read_text().splitlines()]
    assert (told(events)[0], told(events)[-1]) == (("build", "START"), ("build", "COMPLETE"))
    # `check` was asked about, and had nothing new to read.
    asked = ["privatize@S1-1.0", "privatize@S2-1.0", "check"]
    assert sorted(told(events)[1:-1]) == sorted((stage, kind) for stage in asked for kind in ("START", "COMPLETE"))
    flow = events[0]["run"]["runId"]
    noted = json.loads((built.root / ".provenance.json").read_text())["stages"]
    for event in events[1:-1]:
        assert event["run"]["facets"]["parent"]["run"]["runId"] == flow
    done = {event["job"]["name"]: event for event in events if event["eventType"] == "COMPLETE"}
    assert noted["privatize@S1-1.0"]["flow_run"] == flow
    assert noted["privatize@S1-1.0"]["task_run"] == done["privatize@S1-1.0"]["run"]["runId"]

    lock = yaml.safe_load(built.lock())["stages"]
    (out,) = done["privatize@S1-1.0"]["outputs"]
    assert out["name"] == "artifacts/private/S1/1.0"
    assert out["facets"]["version"]["datasetVersion"] == lock["privatize@S1-1.0"]["outs"][0]["md5"]
    # A folder that is read is the datasets that its makers name; code is none.
    assert [dataset["name"] for dataset in done["privatize@S1-1.0"]["inputs"]] == [
        "artifacts/counts/a.txt",
        "artifacts/counts/b.txt",
    ]
    outputs = {dataset["name"] for stage in asked[:2] for dataset in done[stage]["outputs"]}
    assert {dataset["name"] for dataset in done["check"]["inputs"]} == outputs
    text = (built.root / "events.jsonl").read_text()
    assert str(built.root) not in text and "20261" not in text


def test_a_run_over_http_with_a_key_and_only_what_ran(built: Project, run, server, monkeypatch) -> None:
    address, events, _ = server
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "k")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    send_to(built, address)
    assert run().code == 0
    assert told([one["event"] for one in events]) == [("build", "START"), ("build", "COMPLETE")]
    assert built.ran() == []  # turning it on makes nothing stale
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    events.clear()
    assert run().code == 0
    assert told([one["event"] for one in events])[1:3] == [("check", "START"), ("check", "COMPLETE")]
    assert {(one["path"], one["key"]) for one in events} == {("/api/v1/lineage", "Bearer k")}


def test_a_failure_is_told_with_its_line(built: Project, run) -> None:
    send_to(built, "events.jsonl")
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check fail 1")
    assert run().code == 1
    events = [json.loads(line) for line in (built.root / "events.jsonl").read_text().splitlines()]
    assert told(events) == [("build", "START"), ("check", "START"), ("check", "FAIL"), ("build", "FAIL")]
    message = events[2]["run"]["facets"]["errorMessage"]["message"]
    assert message == "CheckFailed: check does not hold; the limit is 3" and events[2]["outputs"] == []


@pytest.mark.parametrize("how", ["nobody listens", "it answers 500"])
def test_a_dead_endpoint_is_one_warning(built: Project, run, server, monkeypatch, how: str) -> None:
    address, events, answer = server
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    answer[0] = 500
    send_to(built, address if how == "it answers 500" else "http://127.0.0.1:9")
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    done = run()
    assert done.code == 0 and done.states["check"] == "ran"
    assert len([line for line in done.notes.said if "OpenLineage" in line]) == 1
    assert len(events) == (how == "it answers 500")


def test_columns_of_parquet_are_the_schema(project: Project) -> None:
    folder = project.root / "artifacts/private/S1/1.0"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"doc_id": ["a"], "n": [1]}), folder / "documents.parquet")
    with open_repo() as repo:
        graph = read_graph(repo)
    events = Events("events.jsonl", "0192d3a0-0000-7000-8000-000000000000", graph, pytest.fail)
    stage = graph.stages["privatize@S1-1.0"]
    events.stage_ends(stage, "0192d3a0-0000-7000-8000-000000000001", StageResult(stage.name, "ran"))
    (event,) = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    (file,) = event["outputs"][0]["facets"]["schema"]["fields"]
    assert file["name"] == "documents.parquet"
    assert [(one["name"], one["type"]) for one in file["fields"]] == [("doc_id", "string"), ("n", "int64")]


@pytest.mark.parametrize("target", ["kafka://host", "http://user:secret@host", "''"])
def test_a_target_that_is_none_is_refused_without_quoting_it(project: Project, target: str) -> None:
    send_to(project, target)
    with pytest.raises(ParameterError, match=r"operation\.openlineage") as refused:
        load_params()
    assert "secret" not in str(refused.value)
