"""The command as a process: killed, stopped, refused. Each of these runs is `python -m lexveil.cli.main` of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from scratch_project import ORDER, ROOT, Project

pytestmark = pytest.mark.slow

PATIENCE = 60  # seconds until a test gives up waiting; nothing is measured by it


@pytest.fixture
def lexveil(project: Project, prefect_server: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `lexveil ...` in the scratch project; what is left of it at the end is killed."""
    (project.root / "data").mkdir()
    (project.root / "data/any.txt").touch()
    started: list[subprocess.Popen[str]] = []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": prefect_server}

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "lexveil.cli", *arguments],
            cwd=project.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waiting(project: Project) -> list[int]:
    """Process ids of stages that are between their two steps."""
    return [int(file.name.removeprefix("waiting-")) for file in project.root.glob("waiting-*")]


def until_waiting(project: Project, stages: int, run: subprocess.Popen[str]) -> None:
    until(lambda: len(waiting(project)) == stages, run)


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def test_sigkill_in_stages_leaves_nothing_running_and_the_last_run_gives_the_same_bytes(
    project: Project, lexveil, built_template: Path
) -> None:
    for stages in (["count@a", "count@b"], ["check"]):
        project.behave(*(f"{stage} wait 600" for stage in stages))
        run = lexveil("run")
        until_waiting(project, len(stages), run)
        children = psutil.Process(run.pid).children(recursive=True)
        assert len(children) >= 3 * len(stages)  # guard, DVC, stage
        run.kill()
        _, alive = psutil.wait_procs(children, timeout=PATIENCE)
        assert alive == []
        assert list(project.root.rglob(".*.partial"))  # it was in the middle
        for file in project.root.glob("waiting-*"):
            file.unlink()
    project.behave()
    code, out, err = finished(lexveil("run"))
    assert (code, err) == (0, "")
    assert "was killed; this one continues there" in out
    undisturbed = Project(built_template)
    assert project.artifacts() == undisturbed.artifacts()
    assert project.lock() == undisturbed.lock()


def test_a_second_run_is_refused_or_waits_and_leftovers_are_ended(built: Project, lexveil) -> None:
    project = built
    project.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    project.behave("check wait 600")
    run = lexveil("run")
    until_waiting(project, 1, run)
    code, out, err = finished(lexveil("run"))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and f"process {run.pid}" in err and "--wait" in err
    code, out, err = finished(lexveil("data", "default"))
    assert (code, out) == (2, "") and err.count("\n") == 1

    # With its guard stopped first, the stage survives the death of the run: the next one has to find and end it.
    (stage,) = waiting(project)
    guard = psutil.Process(run.pid).children()[0]
    guard.suspend()
    patient = lexveil("run", "--wait")
    assert patient.stdout is not None and "waiting for another run" in patient.stdout.readline()
    project.behave()
    run.kill()
    code, out, err = finished(patient)
    assert (code, err) == (0, "")
    assert "that a killed run had left" in out
    assert not psutil.pid_exists(stage) and not guard.is_running()


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.nightly), (signal.SIGTERM, 143)]
)
def test_a_stopped_run_ends_its_stages_and_says_so(built: Project, lexveil, number: int, code: int) -> None:
    project = built
    project.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    project.behave("check wait 600")
    run = lexveil("run")
    until_waiting(project, 1, run)
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(number)
    ended, out, err = finished(run)
    assert (ended, err) == (code, "")
    assert re.fullmatch(
        "stopped after .* s: 5 cached, 1 stopped, 1 not run; `lexveil run` continues here", out.splitlines()[-1]
    )
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)  # one that has ended stays until its new parent looks
    assert alive == []


def test_a_run_prints_plain_lines_and_one_line_for_a_failure_and_takes_new_params(built: Project, lexveil) -> None:
    project = built
    before = (project.root / "params.yaml").read_text()
    other = project.root / "other.yaml"
    other.write_text(before.replace("min_pmi: 2.0", "min_pmy: 2.0"))
    code, out, err = finished(lexveil("run", "--params", "other.yaml"))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and "collocations.min_pmi" in err
    assert (project.root / "params.yaml").read_text() == before

    project.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    project.behave("check fail 2")
    code, out, err = finished(lexveil("run"))
    assert code == 2
    assert err == "lexveil run: check: CheckFailed: check does not hold; the limit is 3\n"
    assert "speaks" not in out
    assert "report ... not run: needs check, which failed" in out.splitlines()
    assert re.fullmatch("failed after .* s: 5 cached, 1 failed, 1 not run", out.splitlines()[-1])

    project.behave()
    project.ran()
    other.write_text(before.replace("[S1, S2]", "[S2]"))
    code, out, err = finished(lexveil("run", "-v", "--params", "other.yaml"))
    assert (code, err) == (0, "")
    assert (project.root / "params.yaml").read_text() == other.read_text()
    assert project.ran() == ["check", "report"]
    assert "artifacts/private/S1/1.0/documents.txt" not in project.artifacts()
    assert "check | check speaks" in out.splitlines() and "first ... cached" in out.splitlines()
    *_, done, report = out.splitlines()
    assert re.fullmatch("done in .* s: 2 ran, 4 cached", done) and report == "report: artifacts/report/index.html"


def test_an_unreachable_prefect_server_is_said_before_anything_runs(
    project: Project, lexveil, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    done = subprocess.run(
        [sys.executable, "-m", "lexveil.cli", "run"],
        cwd=project.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "PREFECT_API_URL" in done.stderr
    assert project.ran() == []


def test_without_any_server_a_run_keeps_its_own_records_in_the_project(built: Project) -> None:
    """Where nothing is stale it starts none."""
    project = built
    (project.root / "data").mkdir()
    (project.root / "data/any.txt").touch()
    home = project.root / "home"
    home.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home)}
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        environment.pop(name, None)

    def run() -> list[str]:
        argv = [sys.executable, "-m", "lexveil.cli", "run"]
        done = subprocess.run(argv, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    *stages, done, report = run()
    assert stages == [f"{stage} ... cached" for stage in ORDER]
    assert re.fullmatch("done in .* s: 7 cached", done) and report == "report: artifacts/report/index.html"
    assert not (project.root / ".lexveil/prefect").exists()

    project.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    *stages, done, report = run()
    assert re.fullmatch("done in .* s: 1 ran, 6 cached", done)
    assert list(home.iterdir()) == []
    import sqlite3

    with sqlite3.connect(project.root / ".lexveil/prefect/prefect.db") as records:
        states = dict(records.execute("select name, state_name from task_run"))
        (table,) = records.execute("select data from artifact where key = 'lexveil-build'").fetchone()
    assert states == dict.fromkeys(ORDER, "Cached") | {"check": "Completed"}
    assert {row["stage"] for row in json.loads(json.loads(table))} == set(ORDER)
