"""`lexveil schedule` end to end: its own server, a schedule that fires, a stop, a power cut."""

import contextlib
import datetime
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import httpx
import psutil
import pytest
import yaml
from asking import until
from scratch_project import ROOT

from flows.prefect_server import free_port
from lexveil.base.errors import RequestError
from lexveil.base.runtime.project import build_lock

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

PATIENCE = 1800  # seconds until a test gives up waiting; nothing is measured by it


class Served:
    """A `lexveil schedule` in the scratch project, and the server that it started."""

    def __init__(self, project):
        self.project = project
        self.port = free_port()

    def start(self):
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lexveil.faces.cli", "schedule", "--port", str(self.port)],
            cwd=self.project.root,
            env=environment | {"PYTHONPATH": str(ROOT), "PREFECT_RUNNER_POLL_FREQUENCY": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = []
        for line in self.process.stdout:
            self.said.append(line.strip())
            if "Ctrl-C" in line:
                break
        # A full pipe would hold it up.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        assert self.process.poll() is None, self.said

    def kill(self):
        """End everything of it as a power cut would."""
        family = self.family()
        for process in family:
            # one may end between being listed and being killed
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=PATIENCE)
        self.process.wait()

    def family(self):
        """The processes of it, as far as they live."""
        with contextlib.suppress(psutil.NoSuchProcess):
            leader = psutil.Process(self.process.pid)
            return [*leader.children(recursive=True), leader]
        return []

    def ask(self, path, **body):
        """POST to Prefect's API; again where its database is busy, as Prefect's own clients do."""
        for _ in range(8):
            address = f"http://127.0.0.1:{self.port}/api/{path}"
            answer = httpx.post(address, json=body, timeout=PATIENCE, trust_env=False)
            if answer.status_code != 503:
                break
            time.sleep(1)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def runs(self, deployment, *states):
        """Runs of a deployment that are in one of ``states``, the first to start first."""
        wanted = {
            "deployments": {"name": {"any_": [deployment]}},
            "flow_runs": {"state": {"name": {"any_": states}}},
        }
        return self.ask("flow_runs/filter", **wanted, sort="START_TIME_ASC")

    def pause(self):
        """Stop the schedule of the build, until it is served anew; return the deployment's id."""
        (entry,) = self.ask("deployments/filter", deployments={"name": {"any_": ["build"]}})
        self.ask(f"deployments/{entry['id']}/pause_deployment")
        return str(entry["id"])

    def start_waiting(self):
        """Start a run, as the button in the pages does, that stops in the middle of a stage; return
        its id."""
        self.project.set_params("seed: 20261", "seed: 1")
        self.project.behave("privatize@S1-1.0 wait 600")
        run = self.ask(f"deployments/{self.pause()}/create_flow_run")
        until(lambda: list(self.project.root.glob("waiting-*")))
        return str(run["id"])


@pytest.fixture
def served(project):
    """A schedule whose first run has made everything, and is the only one."""
    (project.root / "data").mkdir()
    (project.root / "data/any.txt").touch()
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    # Of the committed file only the time of the build is another, for the first run to come in this
    # test's time.
    deployments["deployments"][0]["schedules"] = [{"interval": 15}]
    (project.root / "prefect.yaml").write_text(yaml.safe_dump(deployments))
    served = Served(project)
    try:
        served.start()
        until(lambda: served.runs("build", "Running", "Completed"))
        served.pause()
        until(lambda: served.runs("build", "Completed"))
        yield served
    finally:
        served.kill()


def test_a_schedule_listens_on_this_machine_only(served):
    assert served.said[0] == f"http://127.0.0.1:{served.port}/deployments"
    listening = set()
    for process in served.family():
        with contextlib.suppress(psutil.NoSuchProcess):
            connections = process.net_connections("inet")
            listening |= {
                connection.laddr.ip
                for connection in connections
                if connection.status == psutil.CONN_LISTEN
            }
    assert listening == {"127.0.0.1"}


def test_an_interval_and_a_cron_line_start_runs(served):
    """The interval has started one; the cron line will at its times."""
    (first,) = served.runs("build", "Completed")
    assert first["auto_scheduled"]
    assert first["state"]["message"] == "7 ran"
    audits = until(lambda: served.runs("audit", "Scheduled"))
    assert all(run["auto_scheduled"] for run in audits)
    times = [datetime.datetime.fromisoformat(run["expected_start_time"]) for run in audits]
    assert {time.utctimetuple()[3:7] for time in times} == {(4, 0, 0, 6)}


def test_sigterm_ends_the_run_that_is_under_way_and_pauses_schedules(served):
    running = served.start_waiting()
    family = served.family()
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(PATIENCE) == 0
    assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []
    file = served.project.root / ".lexveil/prefect/prefect.db"
    with contextlib.closing(sqlite3.connect(file)) as database:
        states = dict(database.execute("select id, state_type from flow_run").fetchall())
        paused = database.execute("select paused from deployment").fetchall()
    assert states[running] == "CANCELLED"
    assert not {"RUNNING", "PENDING", "CANCELLING"} & {*states.values()}
    assert paused == [(1,)] * 4


def test_a_run_holds_others_up_and_a_power_cut_leaves_none_behind(served):
    running = served.start_waiting()
    with pytest.raises(RequestError, match="another run is in progress"), build_lock():
        pass
    served.kill()
    served.project.behave()
    served.start()
    (crashed,) = until(lambda: served.runs("build", "Crashed"))
    assert crashed["id"] == running
    # The place of the killed run is free again: the schedule goes on.
    until(lambda: len(served.runs("build", "Completed")) > 1)
