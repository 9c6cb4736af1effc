"""OpenLineage events: what goes out, where to, and that a dead endpoint costs a warning and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from endpoint import endpoint
from scratch_project import Project, RunFlow

from lexveil.lineage.openlineage import Events
from lexveil.runtime.dvc_graph import StageGraph, open_repo, read_graph
from lexveil.runtime.run_events import StageResult

pytestmark = pytest.mark.slow

RUN = "0192d3a0-0000-7000-8000-000000000000"


def told(events: list[dict]) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in events]


def test_a_run_and_a_failure_in_a_file(built: Project, run: RunFlow) -> None:
    built.set_params("openlineage: null", "openlineage: events.jsonl")
    built.set_params("seed: 20261", "seed: 7")
    built.behave("check fail 1")
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    assert run().code == 1
    text = (built.root / "events.jsonl").read_text()
    first, *events, last = (json.loads(line) for line in text.splitlines())
    assert told([first, last]) == [("build", "START"), ("build", "FAIL")]
    private = ["privatize@S1-1.0", "privatize@S2-1.0"]
    kinds = [(stage, kind) for stage in private for kind in ("START", "COMPLETE")]
    assert sorted(told(events)) == sorted([*kinds, ("check", "START"), ("check", "FAIL")])
    flow = first["run"]["runId"]
    assert {event["run"]["facets"]["parent"]["run"]["runId"] for event in events} == {flow}
    ends = {event["job"]["name"]: event for event in events if event["eventType"] != "START"}
    noted = json.loads((built.root / ".provenance.json").read_text())["stages"][private[0]]
    assert (noted["flow_run"], noted["task_run"]) == (flow, ends[private[0]]["run"]["runId"])

    lock = yaml.safe_load(built.lock())["stages"]
    (out,) = ends[private[0]]["outputs"]
    assert out["name"] == "artifacts/private/S1/1.0"
    assert out["facets"]["version"]["datasetVersion"] == lock[private[0]]["outs"][0]["md5"]
    # A folder that is read is the datasets that its makers name; code is none.
    counts = ["artifacts/counts/a.txt", "artifacts/counts/b.txt"]
    assert [dataset["name"] for dataset in ends[private[0]]["inputs"]] == counts
    outputs = {dataset["name"] for stage in private for dataset in ends[stage]["outputs"]}
    assert {dataset["name"] for dataset in ends["check"]["inputs"]} == outputs
    message = ends["check"]["run"]["facets"]["errorMessage"]["message"]
    assert message == "CheckFailed: check does not hold; the limit is 3" and ends["check"]["outputs"] == []
    assert str(built.root) not in text and "20261" not in text


@pytest.mark.parametrize(("answer", "n_requests"), [(201, 2), (500, 1), (None, 0)])
def test_a_dead_endpoint_is_one_warning(
    project: Project, monkeypatch: pytest.MonkeyPatch, answer: int | None, n_requests: int
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "k")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    warnings: list[str] = []
    with endpoint(answer or 201) as server:
        events = Events(server.address if answer else "http://127.0.0.1:9", RUN, StageGraph({}), warnings.append)
        events.begin()
        events.end("ran")
    assert len(warnings) == (n_requests < 2)
    assert [request[:2] for request in server.requests] == [("/api/v1/lineage", "Bearer k")] * n_requests


def test_columns_of_parquet_are_the_schema(project: Project) -> None:
    folder = project.root / "artifacts/private/S1/1.0"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"doc_id": ["a"], "n": [1]}), folder / "documents.parquet")
    with open_repo() as repo:
        graph = read_graph(repo)
    events = Events("events.jsonl", RUN, graph, pytest.fail)
    stage = graph.stages["privatize@S1-1.0"]
    events.stage_ends(stage, RUN[:-1] + "1", StageResult(stage.name, "ran"))
    (event,) = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    (file,) = event["outputs"][0]["facets"]["schema"]["fields"]
    assert file["name"] == "documents.parquet"
    assert [(field["name"], field["type"]) for field in file["fields"]] == [("doc_id", "string"), ("n", "int64")]
