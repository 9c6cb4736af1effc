"""The flow against DVC's own serial `dvc repro`, on the scratch project of conftest.py; and after
faults.

Kills and refusals of the command are in test_recovery.py, a killed worker and checkpoints in
tests/runtime.
"""

import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest
import yaml
from dvc import cli as dvc_cli
from scratch_project import ORDER, ROOT, Project, Run, run_flow, task_runs

from flows.display import Plain
from flows.planning import plan, say_done, say_stale
from lexveil.base import paths
from lexveil.base.levels import RecoveryTarget
from lexveil.base.runtime.dvc_graph import Stage
from lexveil.base.runtime.tables import write_json

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


def test_flow_gives_the_bytes_and_the_lock_of_a_serial_repro(project, run, built_template):
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
    assert project.entries() == serial.entries()
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


def test_what_runs_again_with_the_same_result_stops_there(built, run):
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


@dataclass(frozen=True)
class Failed:
    """A run in which one of two siblings failed, its project, and its tasks at the server."""

    run: Run
    project: Project
    tasks: dict


@pytest.fixture(scope="module")
def failed(built_template, worked_once, prefect_server):
    def fail(project):
        project.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
        project.behave("count@b fail 1")
        return Failed(run_flow(prefect_server), project, task_runs(2))

    return worked_once(built_template, fail)


FAILURE = "CheckFailedError: count@b does not hold; the limit is 3"


def test_a_failure_is_the_stages_own_line(failed):
    assert (failed.run.code, failed.run.error) == (1, f"count@b: {FAILURE}")


def test_nothing_downstream_of_a_failure_runs(failed):
    states = {"first": "cached", "count@a": "ran", "count@b": "failed"}
    states |= dict.fromkeys([*PRIVATIZE, "check", "report"], "not run")
    assert failed.run.states == states
    assert failed.run.notes.results["report"].message == "needs count@b, whose state is failed"


def test_a_failed_stage_leaves_no_output_and_no_entry(failed):
    """The lock has the entry of the run before."""
    assert not (failed.project.root / "artifacts/counts/b.txt").exists()
    assert failed.project.lock().count("min_count: 2") == 1


def test_a_failure_is_that_of_its_task_run_and_of_the_flow_run(failed):
    shown = {name: (task.state_name, task.state.message) for name, task in failed.tasks.items()}
    assert shown[""] == ("Failed", f"count@b: {FAILURE}")
    assert shown["count@b"] == ("Failed", FAILURE)


def test_after_a_failure_only_the_failed_stage_runs(project, failed, run):
    """The new counts are the old in this toy, so what reads them finds nothing changed."""
    project.take(failed.project.root).behave()
    project.ran()
    assert run().code == 0
    assert project.ran() == ["count@b"]


def test_no_setting_of_lexveil_toml_makes_a_stage_stale(built, run):
    built.configure(
        machine={"workers": 1, "memory_limit": "1GB"},
        operation={"audit_days": 1},
        ledger={"cap": 5.0},
        release={"average_words": 30.0, "shares": {"numbers": 0.5}},
        detection={"types": {"PERSON": "drop"}},
        inbox={"source": "inbox", "epsilon": 2.0},
    )
    assert run().code == 0
    assert built.ran() == []


def test_after_a_failure_nothing_new_starts_unless_told_to_keep_going(built, run):
    built.set_params("seed: 20261", "seed: 1")
    built.behave("privatize@S1-1.0 fail 2", "privatize@S2-1.0 fail 1")
    built.configure(machine={"workers": 1})
    failed = run()
    assert failed.notes.results[PRIVATIZE[1]].message == "privatize@S1-1.0 failed"
    both = run(keep_going=True)
    assert both.states[PRIVATIZE[1]] == "failed"
    # the first one decides
    assert both.code == 2 and both.error.endswith("(and 1 more stage failed)")


ORPHANS = {
    "artifacts/private/S3",
    "artifacts/private/mine.txt",
    "artifacts/counts/.a.txt.partial",
}


def test_a_grid_that_grows_and_shrinks_runs_what_is_new_and_keeps_no_orphan(
    built, built_template, run
):
    """Files that a run leaves go; a user's file where a stage reads is set aside; files that no
    stage reads stay.
    """
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
    assert {path for path in ORPHANS if path in said} == ORPHANS
    before = Project(built_template)
    assert built.lock() == before.lock()
    wanted = {"artifacts/data_docs/index.html": b"made by no stage, wanted"}
    assert built.artifacts() == before.artifacts() | wanted
    assert not (root / "private/S3").exists()
    (aside,) = built.root.glob(".lexveil/set-aside/*/artifacts/private/mine.txt")
    assert aside.read_text() == "a user's, where a stage reads"


def test_what_is_missing_or_changed_comes_back_without_running_anything(built, run):
    """Outputs come from DVC's cache."""
    before = built.artifacts(), built.lock()
    (built.root / "artifacts/counts/a.txt").unlink()
    (built.root / "artifacts/first.txt").write_text("changed")
    assert run().states["count@a"] == "restored"
    assert (built.artifacts(), built.lock()) == before
    assert built.ran() == []


def test_a_build_server_is_told_whether_a_stage_is_stale(built):
    """The stage that is always asked is none; nothing runs."""
    said = []
    assert not say_stale(said.append, plan(said.append), None)
    assert said == [f"up to date: {len(ORDER)} stages"]
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    said.clear()
    graph = plan(said.append)
    assert say_stale(said.append, graph, None)
    assert said == [
        "stale: check: changed deps: params.yaml (checks)",
        "stale: report: follows from check",
        f"2 of {len(ORDER)} stages are stale: 1 because of own changes, and 1 that depend on them; "
        "`lexveil run` runs them, except stages whose inputs turn out unchanged",
    ]
    assert not say_stale(said.append, graph, "privatize@S1-1.0")
    assert built.ran() == []


def test_stages_that_never_ran_are_said_to_be_new(project):
    said = []
    assert say_stale(said.append, plan(said.append), None)
    assert f"{len(ORDER)} of {len(ORDER)} stages are stale; `lexveil run` runs them" == said[-1]
    assert [line.rpartition(": ")[2] for line in said[:-1]] == ["has not run yet"] * len(ORDER)


def test_a_stage_whose_input_is_missing_follows_from_the_stage_that_makes_it(
    built,
):
    """DVC itself names every stage that reads what is missing."""
    (built.root / "artifacts/first.txt").unlink()
    said = []
    assert say_stale(said.append, plan(said.append), None)
    assert said[0] == "stale: first: changed outs: artifacts/first.txt"
    assert {line.rpartition(": ")[2] for line in said[1:-1]} == {"follows from first"}


def test_the_report_is_named_by_a_run_that_made_sure_of_it(built):
    graph = plan(print)
    for until, is_named in ((None, True), ("report", True), ("check", False)):
        said = []
        say_done(said.append, "all", 1.0, graph.wanted(until))
        assert any("index.html" in line for line in said) == is_named


def plan_levels(*reasons):
    """Plans of madlib at the levels 0.05, 0.2 and so on, of which those with a reason are
    skipped.
    """
    for strategy in ("S1", "S2"):
        for share, reason in zip((0.05, 0.2), reasons, strict=True):
            planned = {"mechanism": "madlib", "strategy": strategy, "recovery": share}
            planned |= {"band": "content", "nearest": 0.07, "skipped": reason}
            if reason is None:
                del planned["skipped"]
            write_json(planned, paths.planned_epsilon("madlib", strategy, RecoveryTarget(share)))


def test_the_end_of_a_run_names_the_runs_of_the_grid_that_it_skipped(built):
    built.set_params("epsilons: [1.0]", "epsilons: [r0.05, 1.0, r0.2]")
    built.set_params("sentences: [r0.2, r0.5]", "sentences: []")
    stages = [Stage(name="plan_budgets", needs=(), deps=(), outs=(paths.PLANS,), locked=True)]
    for reasons, names in (
        (("out of reach", None), ["madlib S1 r0.05, madlib S2 r0.05"]),
        (
            ("out of reach", "so, too"),
            ["madlib S1 r0.05, madlib S1 r0.2, madlib S2 r0.05, madlib S2 r0.2"],
        ),
        ((None, None), []),
    ):
        plan_levels(*reasons)
        said = []
        say_done(said.append, "all", 1.0, stages)
        expected = [
            f"skipped: {some}: out of reach, so skipped; the report states the reason"
            for some in names
        ]
        assert [line for line in said if line.startswith("skipped")] == expected
    said.clear()
    plan_levels("out of reach", None)
    say_done(said.append, "all", 1.0, [])
    assert not [line for line in said if line.startswith("skipped")]


@pytest.mark.parametrize("verbose", [False, True])
def test_what_a_stage_skips_is_shown_at_once(verbose, capsys):
    display = Plain(verbose)
    display.output("bound_levels", "S1: a reader names 6.7%")
    display.output("bound_levels", "skipped: S1 r0.05: out of reach")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + verbose and lines[-1].endswith("skipped: S1 r0.05: out of reach")


def test_hashes_of_code_are_computed_in_every_run():
    """Stages depend on library files only through code.json. If its stage did not run, DVC would
    not notice that a library file has changed."""
    assert yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]["code"][
        "always_changed"
    ]


# DVC, which is killed when half of a file is written.
CUT = """
import io, json, os, re, signal, sys
import dvc.rwlock
import dvc.utils.serialize._yaml as dvc_yaml
from dvc.cli import main

file = sys.argv[1]
dump_yaml = dvc_yaml._dump
dumps_json = json.dumps

def half(content, stream):
    middle = 3 * len(content) // 4
    if file == "dvc.lock":  # within an entry, because a file that ends with a whole one can be read
        middle = re.compile("\\n +(md5|hash|size)(?=: )").search(content, middle).end()
    stream.write(content[:middle])
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)

def dump(data, stream):
    if ("schema" in data) != (file == "dvc.lock"):
        return dump_yaml(data, stream)
    whole = io.StringIO()
    dump_yaml(data, whole)
    half(whole.getvalue(), stream)

dvc_yaml._dump = dump
if file == "rwlock":
    dvc.rwlock.json.dump = lambda data, stream: half(dumps_json(data), stream)
main(["repro", "--quiet", "--single-item", "check"])
"""


@pytest.mark.parametrize("file", ["dvc.lock", "rwlock", "run cache"])
def test_a_run_takes_away_what_a_killed_dvc_wrote_half(built, run, built_template, file):
    """DVC itself fails on such a file."""
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    killed = subprocess.run([sys.executable, "-c", CUT, file], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert dvc_cli.main(["repro", "--quiet", "--single-item", "check"]) != 0
    assert run().code == 0
    assert set(built.ran()) == {"check"}
    built.set_params("min_coverage: 0.6", "min_coverage: 0.5")
    assert run().code == 0 and built.ran() == []
    undisturbed = Project(built_template)
    assert (built.artifacts(), built.entries()) == (undisturbed.artifacts(), undisturbed.entries())


def test_a_killed_stage_is_said_and_the_next_run_makes_it(built, run, built_template):
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
    assert run().code == 0
    assert built.ran() == ["check"]
    assert built.artifacts() == Project(built_template).artifacts()
