"""The flow against DVC's own serial `dvc repro`, on the scratch project of conftest.py; and after
faults.

Kills and refusals of the command are in test_recovery.py, a killed worker and checkpoints in
tests/runtime.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from scratch_project import ORDER, ROOT, Project, RunFlow, task_runs

from flows.planning import plan, say_done, say_stale

pytestmark = pytest.mark.slow

PRIVATIZE = ["privatize@S1-1.0", "privatize@S2-1.0"]
NEEDS = {
    "first": set(),
    "count@a": {"first"},
    "count@b": {"first"},
    PRIVATIZE[0]: {"count@a", "count@b"},
    PRIVATIZE[1]: {"count@a", "count@b"},
    "check": set(PRIVATIZE),
    "report": {"check"},
}


def test_flow_gives_the_bytes_and_the_lock_of_a_serial_repro(
    project: Project, run: RunFlow, built_template: Path
) -> None:
    project.behave("count@a meet count@b", "count@b meet count@a")
    first = run()
    serial = Project(built_template)
    assert first.code == 0 and first.states == dict.fromkeys(ORDER, "ran")
    times = project.times()
    # The siblings ran side by side: both began before either ended. What needs them began after
    # both.
    ends = times["count@a", "end"], times["count@b", "end"]
    assert max(times["count@a", "start"], times["count@b", "start"]) < min(ends)
    assert times[PRIVATIZE[0], "start"] > max(ends)
    assert project.artifacts() == serial.artifacts() and len(serial.artifacts()) == len(ORDER)
    assert project.lock() == serial.lock()
    shown = task_runs(len(ORDER))
    assert {name: task.state_name for name, task in shown.items()} == dict.fromkeys(
        ["", *ORDER], "Completed"
    )
    names = {str(task.id): name for name, task in shown.items()}
    edges = {
        name: {names[str(need.id)] for need in shown[name].task_inputs["wait_for"]}
        for name in ORDER[1:]
    }
    assert edges | {"first": set()} == NEEDS


def test_what_runs_again_with_the_same_result_stops_there(built: Project, run: RunFlow) -> None:
    """Only stages that DVC was asked about are task runs. Their logs have the lines of the stage
    without DVC's hints.
    """
    built.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
    again = run()
    assert sorted(built.ran()) == ["count@a", "count@b"]
    assert again.states == dict.fromkeys(ORDER, "cached") | {"count@a": "ran", "count@b": "ran"}
    asked = ["count@a", "count@b", *PRIVATIZE]
    states = {name: task.state_name for name, task in task_runs(4).items() if name}
    assert states == dict.fromkeys(asked[:2], "Completed") | dict.fromkeys(asked[2:], "Cached")
    assert ("count@a", "count@a speaks") in again.notes.lines
    log = (built.root / ".lexveil/logs/count@a.log").read_text()
    assert "count@a speaks" in log and "git add" not in log and "dvc push" not in log


def test_a_failure_is_the_stages_own_line_and_nothing_downstream_runs(
    built: Project, run: RunFlow
) -> None:
    built.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
    built.behave("count@b fail 1")
    failed = run()
    assert failed.code == 1
    assert failed.error == "count@b: CheckFailed: count@b does not hold; the limit is 3"
    downstream = dict.fromkeys([*PRIVATIZE, "check", "report"], "not run")
    assert failed.states == {"first": "cached", "count@a": "ran", "count@b": "failed"} | downstream
    assert failed.notes.results["report"].message == "needs count@b, which failed"
    assert not (built.root / "artifacts/counts/b.txt").exists()
    assert built.lock().count("min_count: 2") == 1  # still what was made last
    shown = task_runs(2)
    assert (shown[""].state_name, shown[""].state.message) == ("Failed", failed.error)
    assert (shown["count@b"].state_name, f"count@b: {shown['count@b'].state.message}") == (
        "Failed",
        failed.error,
    )
    built.behave()
    built.ran()
    assert run().code == 0
    # The new counts are the old in this toy, so what reads them finds nothing changed.
    assert built.ran() == ["count@b"]


def test_after_a_failure_nothing_new_starts_unless_told_to_keep_going(
    built: Project, run: RunFlow
) -> None:
    built.set_params("seed: 20261", "seed: 1")
    built.behave("privatize@S1-1.0 fail 2", "privatize@S2-1.0 fail 1")
    built.set_params("workers: 2", "workers: 1")
    failed = run()
    assert failed.notes.results[PRIVATIZE[1]].message == "privatize@S1-1.0 failed"
    both = run(keep_going=True)
    assert both.states[PRIVATIZE[1]] == "failed"
    # the first one decides
    assert both.code == 2 and both.error.endswith("(and 1 more stage failed)")


def test_the_grid_grows_and_shrinks_and_no_orphan_stays(built: Project, run: RunFlow) -> None:
    before = built.lock()
    artifacts = built.artifacts()
    built.set_params("[S1, S2]", "[S1, S2, S3]")
    grown = run()
    assert built.ran() == ["privatize@S3-1.0", "check", "report"]
    assert {grown.notes.results[name].state for name in ORDER[:5]} == {"cached"}
    assert "privatize@S3-1.0" in built.lock()
    root = built.root / "artifacts"
    (root / "data_docs").mkdir()
    (root / "data_docs/index.html").write_text("made by no stage, wanted")
    (root / "private/mine.txt").write_text("a user's, where a stage reads")
    (root / "counts/.a.txt.partial").write_text("left by a killed stage")
    built.set_params("[S1, S2, S3]", "[S1, S2]")
    said = " ".join(run().notes.said)
    assert built.lock() == before
    left = built.artifacts()
    assert left.pop("artifacts/data_docs/index.html") and left == artifacts
    (aside,) = built.root.glob(".lexveil/set-aside/*/artifacts/private/mine.txt")
    assert aside.read_text() == "a user's, where a stage reads"
    for path in (
        "artifacts/private/S3",
        "artifacts/private/mine.txt",
        "artifacts/counts/.a.txt.partial",
    ):
        assert path in said
    assert not (root / "private/S3").exists()


def test_what_is_missing_changed_or_cut_short_comes_back_without_running_anything(
    built: Project, run: RunFlow
) -> None:
    """Outputs from DVC's cache; dvc.lock from what DVC remembers of each run."""
    before = built.artifacts(), built.lock()
    (built.root / "artifacts/counts/a.txt").unlink()
    (built.root / "artifacts/first.txt").write_text("changed")
    assert run().states["count@a"] == "restored"
    assert (built.artifacts(), built.lock()) == before
    (built.root / "dvc.lock").write_text(before[1][: len(before[1]) // 3])
    (built.root / ".dvc/tmp/rwlock").write_text('{"write": {"a"')
    assert run().code == 0
    assert (built.artifacts(), built.lock()) == before and built.ran() == []


def test_a_build_server_is_told_whether_a_stage_is_stale(built: Project) -> None:
    """The stage that is always asked is none; nothing runs."""
    said: list[str] = []
    assert not say_stale(said.append, plan(said.append), None)
    assert said == [f"up to date: {len(ORDER)} stages"]
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    said.clear()
    graph = plan(said.append)
    assert say_stale(said.append, graph, None) and said[0].startswith("stale: check: ")
    assert not say_stale(said.append, graph, "privatize@S1-1.0")
    assert built.ran() == []


def test_the_report_is_named_by_a_run_that_made_sure_of_it(built: Project) -> None:
    graph = plan(print)
    for until, is_named in ((None, True), ("report", True), ("check", False)):
        said: list[str] = []
        say_done(said.append, "all", 1.0, graph.wanted(until))
        assert any("index.html" in line for line in said) == is_named


def test_hashes_of_code_are_computed_in_every_run() -> None:
    """Otherwise DVC would not notice that a library file has changed, because stages depend on
    library files only through code.json.
    """
    assert yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]["code"][
        "always_changed"
    ]


def overwrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change bytes as a failing disk does: mode and times stay."""
    before = file.stat()
    file.chmod(0o644)
    file.write_bytes(change(file.read_bytes()))
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_killed_stage_is_said_and_the_next_run_makes_it(
    built: Project, run: RunFlow, built_template: Path
) -> None:
    """Locks of a dead DVC do not block the next run."""
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check die")
    failed = run()
    assert failed.code == 1
    assert (
        failed.error.startswith("check: the stage was killed (signal 9)")
        and ".lexveil/logs/check" in failed.error
    )
    assert "check speaks" in (built.root / ".lexveil/logs/check.log").read_text()
    assert not (built.root / "artifacts/checks/outputs.json").exists()
    built.behave()
    built.ran()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    entry = {"pid": dead.pid, "cmd": "dvc repro"}
    outs = {
        str(built.root / name): entry
        for name in ("artifacts/checks/outputs.json", "artifacts/first.txt")
    }
    locks = {"write": outs, "read": {path: [entry] for path in outs}}
    (built.root / ".dvc/tmp/rwlock").write_text(json.dumps(locks))
    (built.root / ".dvc/tmp/lock").write_text(f"{dead.pid:>10}\n")
    assert run().code == 0
    assert built.ran() == ["check"]
    assert built.artifacts() == Project(built_template).artifacts()


def test_a_damaged_cache_is_never_given_back(
    built: Project, run: RunFlow, built_template: Path
) -> None:
    """Files and lists of a folder's files; all write-protected, so that DVC takes them for
    whole."""
    entries = yaml.safe_load(built.lock())["stages"].values()
    hashes = {out["path"]: out["md5"] for entry in entries for out in entry["outs"]}
    copies = {
        path: built.root / ".dvc/cache/files/md5" / md5[:2] / md5[2:]
        for path, md5 in hashes.items()
    }
    assert {copy.stat().st_mode & 0o777 for copy in copies.values()} == {0o444}
    overwrite(copies["artifacts/first.txt"], lambda content: b"S" + content[1:])
    overwrite(copies["artifacts/counts/a.txt"], lambda content: content[: len(content) // 2])
    copies["artifacts/counts/b.txt"].unlink()
    overwrite(
        copies["artifacts/private/S1/1.0"],
        lambda content: content.replace(b"documents", b"dokuments"),
    )
    overwrite(copies["artifacts/private/S2/1.0"], lambda content: content[: len(content) // 2])
    left = [
        copies["artifacts/first.txt"].with_name(".aB_c-d.tmp"),
        built.root / "artifacts/counts/.aB_c-d.tmp",
    ]
    for file in left:
        file.write_text("half")
    shutil.rmtree(built.root / "artifacts/private")
    for name in ("first.txt", "counts/a.txt", "counts/b.txt"):
        (built.root / "artifacts" / name).unlink()
    assert run().code == 0
    assert sorted(built.ran()) == [
        "count@a",
        "count@b",
        "first",
        "privatize@S1-1.0",
        "privatize@S2-1.0",
    ]
    undisturbed = Project(built_template)
    assert (built.artifacts(), built.lock()) == (undisturbed.artifacts(), undisturbed.lock())
    assert not any(file.exists() for file in left)
