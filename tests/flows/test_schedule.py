"""`lexveil schedule` end to end: its own server, a schedule that fires, a webhook, its end."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from scratch_project import ORDER, ROOT, Project

pytestmark = pytest.mark.slow

PATIENCE = 300  # seconds until a test gives up waiting; nothing is measured by it
Record = dict[str, Any]


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return value


class Served:
    """One `lexveil schedule` in the scratch project and the server that it started."""

    def __init__(self, project: Project) -> None:
        self.project = project
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.pages = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lexveil.cli", "schedule", "--port", str(self.port)],
            cwd=self.project.root,
            env=environment | {"PYTHONPATH": str(ROOT), "PREFECT_RUNNER_POLL_FREQUENCY": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        assert self.process.stdout is not None
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line.strip())
            if "Ctrl-C" in line:
                break
        # A full pipe would hold it up.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        assert self.process.poll() is None, self.said

    def kill(self) -> None:
        """End everything of it as a power cut would."""
        family = self.family()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):  # one may end between being listed and being killed
                process.kill()
        psutil.wait_procs(family, timeout=PATIENCE)
        self.process.wait()

    def family(self) -> list[psutil.Process]:
        """The processes of it, as far as they live."""
        with contextlib.suppress(psutil.NoSuchProcess):
            leader = psutil.Process(self.process.pid)
            return [*leader.children(recursive=True), leader]
        return []

    def ask(self, path: str, **body: Any) -> Any:
        """POST to Prefect's API; again where its database is busy, as Prefect's own clients do."""
        for _ in range(8):
            answer = httpx.post(f"{self.pages}/api/{path}", json=body, timeout=60, trust_env=False)
            if answer.status_code != 503:
                break
            time.sleep(1)
        answer.raise_for_status()
        return answer.json()

    def runs(self, deployment: str, *states: str) -> list[Record]:
        """Runs of a deployment that are in one of ``states``, the first to start first."""
        runs: list[Record] = self.ask(
            "flow_runs/filter",
            deployments={"name": {"any_": [deployment]}},
            flow_runs={"state": {"name": {"any_": list(states)}}},
            sort="START_TIME_ASC",
        )
        return runs

    def start_now(self, deployment: str, **parameters: Any) -> Record:
        """Start a deployment as the button in the pages does."""
        run: Record = self.ask(f"deployments/{self.id_of(deployment)}/create_flow_run", parameters=parameters)
        return run

    def id_of(self, deployment: str) -> str:
        (entry,) = self.ask("deployments/filter", deployments={"name": {"any_": [deployment]}})
        return str(entry["id"])

    def pause(self, deployment: str) -> None:
        """Stop a deployment's schedules, until it is served anew."""
        path = f"api/deployments/{self.id_of(deployment)}/pause_deployment"
        answer = httpx.post(f"{self.pages}/{path}", timeout=60, trust_env=False)
        answer.raise_for_status()

    def state_of(self, run: Record) -> Record:
        answer = httpx.get(f"{self.pages}/api/flow_runs/{run['id']}", timeout=60, trust_env=False)
        state: Record = answer.json()["state"]
        return state

    def ended(self, run: Record) -> Record:
        """Wait for a run's end; return its last state."""
        final = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")
        state: Record = until(lambda: (state := self.state_of(run))["type"] in final and state)
        return state


@pytest.fixture(scope="module")
def server(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests, which may end it; its project has everything made by a run of the schedule."""
    root = tmp_path_factory.mktemp("served") / "project"
    shutil.copytree(template, root)
    (root / "data").mkdir()
    (root / "data/any.txt").touch()
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    # Of the committed file only the time of the build is another, for the first run to come in this test's time.
    deployments["deployments"][0]["schedules"] = [{"interval": 15}]
    (root / "prefect.yaml").write_text(yaml.safe_dump(deployments))
    server = Served(Project(root))
    yield server
    server.kill()


@pytest.fixture
def served(server: Served) -> Iterator[Served]:
    """The server, alive, with the build's schedule paused: a test starts its own runs; afterwards all is as before."""
    if server.process.poll() is not None:
        server.start()
    until(lambda: server.runs("build", "Completed"))
    server.pause("build")
    params = (server.project.root / "params.yaml").read_text()
    yield server
    # Let the stages of later runs do what they do in every project.
    (server.project.root / "params.yaml").write_text(params)
    server.project.behave()
    for file in server.project.root.glob("waiting-*"):
        file.unlink()


def test_it_listens_on_this_machine_only_and_says_where(served: Served) -> None:
    assert served.said[0] == f"{served.pages}/deployments"
    assert any(line.startswith("audit/audit: 0 4 * * 0") for line in served.said)
    listening: set[str] = set()
    for process in served.family():
        with contextlib.suppress(psutil.NoSuchProcess):
            connections = process.net_connections("inet")
            listening |= {connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_schedules_start_runs(served: Served) -> None:
    """An interval has; a cron line will at its times."""
    first = served.runs("build", "Completed")[0]
    assert first["auto_scheduled"] and first["state"]["message"] == "7 ran"
    assert first["parameters"] == {"keep_going": False}
    tasks = served.ask("task_runs/filter", flow_runs={"id": {"any_": [first["id"]]}})
    assert sorted(task["name"] for task in tasks if not task["name"].startswith("data")) == sorted(ORDER)
    assert (served.project.root / "artifacts/report/index.html").exists()
    for run in until(lambda: served.runs("audit", "Scheduled")):
        when = datetime.datetime.fromisoformat(run["expected_start_time"])
        assert run["auto_scheduled"]
        assert (when.utctimetuple().tm_wday, when.utctimetuple()[3:6]) == (6, (4, 0, 0))


def start_waiting(served: Served, seed: int) -> Record:
    """Start a run that stops in the middle of a stage."""
    served.project.set_params("seed: 20261", f"seed: {seed}")
    served.project.behave("privatize@S1-1.0 wait 600")
    run = served.start_now("build")
    until(lambda: list(served.project.root.glob("waiting-*")))
    return run


@pytest.mark.nightly
def test_a_run_by_hand_is_refused_during_a_run_and_a_power_cut_leaves_none_behind(served: Served) -> None:
    running = start_waiting(served, seed=1)
    by_hand = subprocess.run(
        [sys.executable, "-m", "lexveil.cli", "run"],
        cwd=served.project.root, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert by_hand.returncode == 2 and "another run is at work" in by_hand.stderr

    served.kill()
    served.project.behave()
    served.start()
    state = served.ended(running)
    assert state["name"] == "Crashed"
    # The place of the killed run is free again: the schedule goes on.
    until(lambda: [run for run in served.runs("build", "Completed") if run["start_time"] > state["timestamp"]])


def test_sigterm_ends_the_run_that_is_under_way_and_pauses_the_schedules(served: Served) -> None:
    running = start_waiting(served, seed=2)
    family = served.family()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(PATIENCE) == 0
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert alive == []
    with sqlite3.connect(served.project.root / ".lexveil/prefect/prefect.db") as database:
        states = dict(database.execute("select id, state_type from flow_run").fetchall())
        paused = database.execute("select paused from deployment").fetchall()
    assert not {"RUNNING", "PENDING", "CANCELLING"} & set(states.values())
    assert states[running["id"]] == "CANCELLED"
    assert paused == [(1,)] * 4
