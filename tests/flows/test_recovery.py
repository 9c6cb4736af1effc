"""The command as a process: killed, stopped, refused. Each of these runs is a process of
`python -m lexveil.faces.cli`."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import psutil
import pytest
from scratch_project import ORDER, ROOT, Project

pytestmark = pytest.mark.slow

PATIENCE = 1800  # seconds until a test gives up waiting; nothing is measured by it


@pytest.fixture
def lexveil(project, prefect_server):
    """Start `lexveil ...` in the scratch project; what is left of it at the end is killed."""
    (project.root / "data").mkdir()
    (project.root / "data/any.txt").touch()
    started = []

    def start(*arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "lexveil.faces.cli", *arguments],
            cwd=project.root,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PREFECT_API_URL": prefect_server,
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until_waiting(project, stages, run):
    """Wait until so many stages are between their two steps."""
    deadline = time.monotonic() + PATIENCE
    while len(list(project.root.glob("waiting-*"))) != stages:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def finished(process):
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def make_stale(project, *behaviour):
    """Make the stage `check` stale, so that it runs again with the same result."""
    project.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    project.behave(*behaviour)


@pytest.fixture
def working(built, lexveil):
    """A run in which two sibling stages are in the middle of their work."""
    built.set_params("count:\n  min_count: 2 ", "count:\n  min_count: 1 ")
    built.behave("count@a wait 600", "count@b wait 600")
    run = lexveil("run")
    until_waiting(built, 2, run)
    assert list(built.root.rglob(".*.partial"))
    return run


@pytest.mark.parametrize("command", [("run",), ("data", "default")], ids=" ".join)
def test_commands_beside_a_run_are_refused(working, lexveil, command):
    code, out, err = finished(lexveil(*command))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"process {working.pid}" in err
    assert "--wait" in err


def test_a_run_that_waits_goes_on_where_one_was_killed(working, lexveil, built, built_template):
    """Nothing of the killed run stays at work, and the bytes are those of an undisturbed run."""
    family = psutil.Process(working.pid).children(recursive=True)
    assert len(family) >= 6  # guard, DVC, stage
    patient = lexveil("run", "--wait")
    assert patient.stdout is not None
    assert "waiting for another run" in patient.stdout.readline()
    built.set_params("count:\n  min_count: 1 ", "count:\n  min_count: 2 ")
    built.behave()
    working.kill()
    assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []
    code, out, err = finished(patient)
    assert (code, err) == (0, "")
    assert "was killed; this run continues it" in out
    undisturbed = Project(built_template)
    assert (built.artifacts(), built.entries()) == (undisturbed.artifacts(), undisturbed.entries())


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly), (signal.SIGTERM, 143)],
)
def test_a_stopped_run_ends_its_stages_and_says_so(built, lexveil, number, code):
    make_stale(built, "check wait 600")
    run = lexveil("run")
    until_waiting(built, 1, run)
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(number)
    ended, out, err = finished(run)
    assert (ended, err) == (code, "")
    *_, last = out.splitlines()
    assert re.fullmatch(
        "stopped after .* s: 5 cached, 1 stopped, 1 not run; `lexveil run` continues here", last
    )
    # one that ended stays until its new parent looks
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []


def test_a_run_refuses_wrong_params_and_keeps_its_own(built, lexveil):
    before = (built.root / "params.yaml").read_text()
    (built.root / "other.yaml").write_text(before.replace("min_pmi: 2.0", "min_pmy: 2.0"))
    code, out, err = finished(lexveil("run", "--params", "other.yaml"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "collocations.min_pmi" in err
    assert (built.root / "params.yaml").read_text() == before


@pytest.mark.usefixtures("built")
def test_a_run_until_an_unknown_stage_is_refused(lexveil):
    refused = "lexveil run: dvc.yaml has no stage chekc (nearest: check)\n"
    assert finished(lexveil("run", "chekc")) == (2, "", refused)


@pytest.mark.usefixtures("built")
def test_a_run_until_a_stage_asks_for_no_other(lexveil):
    _, out, _ = finished(lexveil("run", "privatize@S1-1.0"))
    assert out.startswith("4 stages are up to date\n")


def test_a_run_takes_right_params_and_prints_plain_lines(built, lexveil):
    params = (built.root / "params.yaml").read_text().replace("[S1, S2]", "[S2]")
    (built.root / "other.yaml").write_text(params)
    code, out, err = finished(lexveil("run", "-v", "--params", "other.yaml"))
    assert (code, err) == (0, "")
    assert (built.root / "params.yaml").read_text() == params
    *lines, done, report = out.splitlines()
    assert {"check | check speaks", "4 stages are up to date"} <= {*lines}
    assert re.fullmatch("done in .* s: 2 ran, 4 cached", done)
    assert report == "report: artifacts/report/index.html"


@pytest.mark.nightly
def test_an_unreachable_prefect_server_is_said_before_anything_runs(project, lexveil):
    code, out, err = finished(lexveil("run", PREFECT_API_URL="http://127.0.0.1:9/api"))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and "PREFECT_API_URL" in err
    assert project.ran() == []


@pytest.mark.nightly
def test_without_any_server_a_run_keeps_its_own_records_in_the_project(built, lexveil):
    """A run without stale stages starts no server. Nothing is written to the user's home."""
    home = built.root / "home"
    records = built.root / ".lexveil/prefect"
    home.mkdir()
    own = {"HOME": str(home), "PREFECT_API_URL": "", "PREFECT_HOME": str(records)}
    code, out, err = finished(lexveil("run", **own))
    assert (code, err, out.splitlines()[:-2]) == (0, "", [f"{len(ORDER)} stages are up to date"])
    assert not records.exists()

    make_stale(built)
    assert finished(lexveil("run", **own))[::2] == (0, "")
    assert list(home.iterdir()) == []
    with contextlib.closing(sqlite3.connect(records / "prefect.db")) as database:
        states = dict(database.execute("select name, state_name from task_run"))
        (table,) = database.execute(
            "select data from artifact where key = 'lexveil-build'"
        ).fetchone()
    assert states == {"check": "Completed", "report": "Cached"}
    assert [row["stage"] for row in json.loads(json.loads(table))] == ["check"]


@pytest.mark.nightly
@pytest.mark.nightly
def test_a_killed_server_costs_the_record_and_not_the_work(built, lexveil):
    """The server of one run is killed in the middle of a stage; the stage ends well, and so do
    those after it."""
    undisturbed = built.artifacts()
    make_stale(built, "check wait 3")
    process = lexveil("run", PREFECT_API_URL="", PREFECT_CLIENT_MAX_RETRIES="1")
    until_waiting(built, 1, process)
    family = psutil.Process(process.pid).children(recursive=True)
    (server,) = (child for child in family if child.cmdline()[1:3] == ["-m", "prefect"])
    server.kill()
    code, out, err = finished(process)
    assert code == 1
    assert "check ... done" in out and "6 stages are up to date" in out
    assert err.count("\n") == 1 and "went away during the run" in err and "1 ran, 6 cached" in err
    built.ran()
    assert finished(lexveil("run"))[0] == 0
    assert built.ran() == [] and built.artifacts() == undisturbed
