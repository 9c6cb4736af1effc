"""The flow against DVC's own serial `dvc repro`, on the scratch project of conftest.py."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

import pytest
import yaml
from scratch_project import ORDER, Project, Run

from flows import stages
from lexveil.runtime.dvc_graph import open_repo, read_graph

pytestmark = pytest.mark.slow


def task_runs(prefect_server: str, n: int = len(ORDER)) -> dict[str, object]:
    """The n task runs of the last flow run, by name, as the server knows them."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        (last,) = client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_DESC, limit=1)
        for _ in range(600):  # the server has the states, and writes them to its database in its own time
            runs = client.read_task_runs(flow_run_filter=FlowRunFilter(id={"any_": [last.id]}))
            if len(runs) >= n and all(run.state is not None and run.state.is_final() for run in runs):
                break
            time.sleep(0.05)
    return {"": last} | {run.name: run for run in runs}


def test_order_and_edges_are_those_of_dvc(project: Project) -> None:
    with open_repo() as repo:
        graph = read_graph(repo)
    assert list(graph.stages) == re.findall(r"Running stage '(.*)':", project.dvc("repro"))
    edges = {(need, stage.name) for stage in graph.stages.values() for need in stage.needs}
    shown = re.findall(r'"(.*)" -> "(.*)";', project.dvc("dag", "--dot"))
    assert edges == set(shown)
    assert len(edges) == 9


def test_flow_gives_the_bytes_and_the_lock_of_a_serial_repro(first_run: tuple[Path, Run], built_template: Path) -> None:
    root, run = first_run
    project, serial = Project(root), Project(built_template)
    assert run.code == 0
    assert run.states == dict.fromkeys(ORDER, "ran")
    times = project.times()
    # The siblings ran side by side: both began before either ended. What needs them began after both.
    ends = times["count@a", "end"], times["count@b", "end"]
    assert max(times["count@a", "start"], times["count@b", "start"]) < min(ends)
    assert times["privatize@S1-1.0", "start"] > max(ends)
    assert project.artifacts() == serial.artifacts() and len(serial.artifacts()) == len(ORDER)
    assert project.lock() == serial.lock()


def test_a_large_graph_has_task_runs_only_of_what_changed(
    built: Project, run, prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "ALL_SHOWN", len(ORDER) - 1)
    built.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
    again = run()
    assert again.states == dict.fromkeys(ORDER, "cached") | {"count@a": "ran", "count@b": "ran"}
    asked = ORDER[1:5]  # what ran, and what DVC was asked about because of that
    runs = task_runs(prefect_server, len(asked))
    assert runs.pop("").state_name == "Completed"
    assert sorted(runs) == sorted(asked)


def test_unchanged_stages_are_cached_in_prefect_and_edges_are_dvcs(built: Project, run, prefect_server: str) -> None:
    again = run()
    assert again.code == 0 and again.states == dict.fromkeys(ORDER, "cached")
    assert built.ran() == []
    runs = task_runs(prefect_server)
    flow = runs.pop("")
    assert flow.state_name == "Completed"
    assert {name: (run.state_type.value, run.state_name) for name, run in runs.items()} == dict.fromkeys(
        ORDER, ("COMPLETED", "Cached")
    )
    names = {run.id: name for name, run in runs.items()}
    after = {name: {names[need.id] for need in run.task_inputs.get("wait_for", [])} for name, run in runs.items()}
    assert after == {
        "first": set(),
        "count@a": {"first"},
        "count@b": {"first"},
        "privatize@S1-1.0": {"count@a", "count@b"},
        "privatize@S2-1.0": {"count@a", "count@b"},
        "check": {"privatize@S1-1.0", "privatize@S2-1.0"},
        "report": {"check"},
    }


def test_a_changed_parameter_runs_only_what_it_must(built: Project, run) -> None:
    built.set_params("epsilons: [1.0]", "epsilons: [1.0, 2.0]")
    more = run()
    new = {"privatize@S1-2.0", "privatize@S2-2.0"}
    assert set(built.ran()) == new | {"check", "report"}
    assert {name: result.state for name, result in more.notes.results.items() if name not in new} == {
        "first": "cached",
        "count@a": "cached",
        "count@b": "cached",
        "privatize@S1-1.0": "cached",
        "privatize@S2-1.0": "cached",
        "check": "ran",
        "report": "ran",
    }


def test_what_runs_again_with_the_same_result_stops_there(built: Project, run) -> None:
    built.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
    again = run()
    assert sorted(built.ran()) == ["count@a", "count@b"]
    assert again.states == dict.fromkeys(ORDER, "cached") | {"count@a": "ran", "count@b": "ran"}


def test_a_failure_is_the_stages_own_line_and_nothing_downstream_runs(built: Project, run, prefect_server: str) -> None:
    project = built
    project.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
    project.set_params("seed: 20261", "seed: 1")
    project.behave("count@b fail 1")
    failed = run()
    assert failed.code == 1
    assert failed.error == "count@b: CheckFailed: count@b does not hold; the limit is 3"
    downstream = ["privatize@S1-1.0", "privatize@S2-1.0", "check", "report"]
    assert failed.states == {"first": "cached", "count@a": "ran", "count@b": "failed"} | dict.fromkeys(
        downstream, "not run"
    )
    assert not (project.root / "artifacts/counts/b.txt").exists()
    (recorded,) = yaml.safe_load(project.lock())["stages"]["count@b"]["params"].values()
    assert recorded == {"count": {"min_count": 2}}  # still what was made last
    runs = task_runs(prefect_server)
    assert (runs[""].state_name, runs[""].state.message) == ("Failed", failed.error)
    assert (runs["count@b"].state_name, f"count@b: {runs['count@b'].state.message}") == ("Failed", failed.error)
    for name in downstream:
        assert (runs[name].state_type.value, runs[name].state_name) == ("CANCELLED", "NotRun")
        assert runs[name].state.message == "needs count@b, which failed"

    project.behave()
    project.ran()
    assert run().code == 0
    # The new noise is the old in this toy, so what reads it finds nothing changed.
    assert sorted(project.ran()) == ["count@b", "privatize@S1-1.0", "privatize@S2-1.0"]


def test_after_a_failure_nothing_new_starts_unless_told_to_keep_going(built: Project, run) -> None:
    project = built
    project.set_params("seed: 20261", "seed: 1")
    project.behave("privatize@S1-1.0 fail 1", "privatize@S2-1.0 fail 2")
    project.set_params("workers: 2", "workers: 1")
    failed = run()
    assert failed.states["privatize@S2-1.0"] == "not run"
    assert failed.notes.results["privatize@S2-1.0"].message == "privatize@S1-1.0 failed"
    both = run(keep_going=True)
    assert both.states["privatize@S2-1.0"] == "failed"
    assert both.code == 1 and both.error.endswith("(and 1 more stage failed)")


def test_exit_code_two_of_a_stage_is_a_wrong_request(project: Project, run) -> None:
    project.behave("first fail 2")
    failed = run()
    assert failed.code == 2
    assert failed.error.startswith("first: CheckFailed: ")


def test_a_stage_that_dies_without_a_word_says_where_its_output_is(project: Project, run) -> None:
    project.behave("first die")
    failed = run()
    assert failed.code == 1
    assert "killed (signal 9)" in failed.error and ".lexveil/logs/first.log" in failed.error
    assert "first speaks" in (project.root / ".lexveil/logs/first.log").read_text()


def test_output_reaches_prefects_log_without_dvcs_hints(built: Project, run) -> None:
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    messages = list[tuple[str, str]]()

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append((getattr(record, "task_run_name", ""), record.getMessage()))

    # What Prefect's own handler is given: whether its server then has it, and when, is Prefect's business.
    logger, kept = logging.getLogger("prefect.task_runs"), Kept()
    logger.addHandler(kept)
    try:
        notes = run().notes
    finally:
        logger.removeHandler(kept)
    assert ("check", "check speaks") in notes.lines
    assert ("check", "check speaks") in messages
    assert not [message for _, message in messages if "git add" in message or "dvc push" in message]


def test_a_missing_output_comes_back_from_dvcs_cache(built: Project, run) -> None:
    before = built.artifacts()
    (built.root / "artifacts/counts/a.txt").unlink()
    assert run().states["count@a"] == "restored"
    assert built.ran() == [] and built.artifacts() == before


def test_orphans_are_pruned_and_the_lock_is_that_of_a_fresh_build(built: Project, run) -> None:
    project = built
    lock, artifacts = project.lock(), project.artifacts()
    project.set_params("[S1, S2]", "[S1, S2, S3]")
    run()
    assert "privatize@S3-1.0" in project.lock()
    root = project.root / "artifacts"
    (root / "data_docs").mkdir()
    (root / "data_docs/index.html").write_text("made by no stage, wanted")
    (root / "notes.txt").write_text("a user's")
    (root / "private/mine.txt").write_text("a user's, where a stage reads")
    (root / "counts/.a.txt.partial").write_text("left by a killed stage")
    project.set_params("[S1, S2, S3]", "[S1, S2]")
    notes = run().notes
    assert project.lock() == lock
    kept = {"artifacts/data_docs/index.html", "artifacts/notes.txt"}
    assert {name: text for name, text in project.artifacts().items() if name not in kept} == artifacts
    assert kept <= project.artifacts().keys()
    assert (
        project.root / ".lexveil/set-aside/artifacts/private/mine.txt"
    ).read_text() == "a user's, where a stage reads"
    said = " ".join(notes.said)
    for path in ("artifacts/private/S3", "artifacts/private/mine.txt", "artifacts/counts/.a.txt.partial"):
        assert path in said
    assert not (root / "private/S3").exists()


def test_a_lock_file_cut_short_is_made_again_without_running_anything(built: Project, run) -> None:
    whole = built.lock()
    (built.root / "dvc.lock").write_text(whole[: len(whole) // 3])
    (built.root / ".dvc/tmp/rwlock").write_text('{"write": {"a"')
    assert run().code == 0
    assert built.lock() == whole
    assert built.ran() == []
