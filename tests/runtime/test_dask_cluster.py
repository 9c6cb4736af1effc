"""Work on a Dask cluster: order, what is raised, what is killed, and what cannot be reached."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from operator import length_hint
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pytest
from pool_functions import DieOnce, Scale, die, fail, negative, refuse, sleep

from lexveil.config import MachineParams
from lexveil.errors import LexveilError, RequestError
from lexveil.runtime.pool import ordered_map
from tests.conftest import ROOT
from tests.runtime.conftest import HERE

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")
cluster = pytest.importorskip("lexveil.runtime.dask_cluster")


def test_order_and_how_much_is_under_way(there: MachineParams) -> None:
    """The scheduler's workers count, not those of params.yaml."""
    items = iter(range(30))
    results = ordered_map(negative, items, there)
    assert next(results) == 0
    assert length_hint(items) == 30 - (3 + 2)
    assert list(results) == [-number for number in range(1, 30)]
    assert list(ordered_map(negative, [], there)) == []


def test_equal_items_are_worked_on_each(there: MachineParams, tmp_path: Path) -> None:
    """Dask takes calls that look the same for one, unless it is told not to: a release would share its noise."""
    function = Scale(np.arange(9.0), np.arange(9.0), np.zeros(1, dtype=np.int64), tmp_path)
    done = list(ordered_map(function, [3] * 12, there))
    assert [one["value"] for one in done] == [108.0] * 12
    pids = {one["pid"] for one in done}
    assert len(pids) >= 2 and os.getpid() not in pids
    assert sum(max(one["calls"] for one in done if one["pid"] == pid) for pid in pids) == 12


def test_what_a_task_raises_is_raised_here(there: MachineParams) -> None:
    with pytest.raises(RuntimeError, match=r"^ValueError in \w+\.py, line \d+$"):  # what it says may be a text
        list(ordered_map(fail, range(9), there))
    with pytest.raises(RequestError, match=r"^no$"):
        list(ordered_map(refuse, ["x"], there))


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path, there: MachineParams) -> None:
    """Not even in the middle of the first item, when no other worker may have the function yet."""
    assert list(ordered_map(DieOnce(tmp_path, 0), range(20), there)) == list(range(20))
    tried = [file.name.split("-")[0] for file in tmp_path.glob("*-*")]
    assert tried.count("0") >= 2


def test_a_worker_with_other_code_is_refused(there: MachineParams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "build_hash", lambda: "another")
    with pytest.raises(RequestError, match="another version of Lexveil"):
        list(ordered_map(negative, [1], there))


class Apart(NamedTuple):
    """A scheduler and a worker that are not of this process, and where they log."""

    scheduler: subprocess.Popen[bytes]
    worker: subprocess.Popen[bytes]
    where: MachineParams
    log: Path


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Apart]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    made: list[subprocess.Popen[bytes]] = []
    try:
        with (tmp_path / "log").open("w") as log:
            for name, *more in (("scheduler", "--port", "0"), ("worker", "--nthreads", "1")):
                program = f"from distributed.cli.dask_{name} import main; main()"
                options = [*more, "--scheduler-file", "where.json", "--host", "127.0.0.1", "--no-dashboard"]
                command = [sys.executable, "-c", program, *options]
                made.append(subprocess.Popen(command, stderr=log, stdout=log, env=environment, cwd=tmp_path))
        where = tmp_path / "where.json"
        while not where.exists() or not where.read_text():  # it is made before it is written
            assert made[0].poll() is None
            time.sleep(0.1)
        address = json.loads(where.read_text())["address"]
        yield Apart(*made, HERE.model_copy(update={"dask_scheduler": address}), tmp_path / "log")
    finally:
        for process in made:
            kill(process)
            process.wait(timeout=60)


def kill(process: subprocess.Popen[bytes]) -> None:
    """With its children."""
    if process.poll() is None:
        with suppress(psutil.NoSuchProcess):  # one may end between being listed and being killed
            leader = psutil.Process(process.pid)
            for member in [leader, *leader.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    member.kill()


def test_a_failure_is_logged_without_what_failed(apart: Apart) -> None:
    """Dask's log of a task that failed shows its arguments, which may be texts."""
    with pytest.raises(RequestError, match="no"):
        list(ordered_map(refuse, ["zorblax"], apart.where))
    logged = apart.log.read_text()
    assert "Compute Failed" in logged and "zorblax" not in logged


@pytest.mark.parametrize(("who", "said"), [("worker", "lost its last worker"), ("scheduler", r"tcp://.* was lost")])
def test_who_is_lost_in_the_middle_is_said(
    apart: Apart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str, said: str
) -> None:
    """The only worker with its nanny, who would start it anew; or the scheduler."""

    def items() -> Iterator[str]:
        yield str(tmp_path / "mark")
        while not (tmp_path / "mark").exists():
            time.sleep(0.05)
        monkeypatch.setattr(cluster, "WORKERS", 1.0)
        monkeypatch.setattr(cluster, "LOOK", 0.25)
        kill(getattr(apart, who))

    with pytest.raises(LexveilError, match=said):
        list(ordered_map(sleep, items(), apart.where))


@pytest.mark.parametrize("answers", [True, False])
def test_where_no_scheduler_answers_it_is_said(answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody is, or somebody takes connections and says nothing, as a server that expects TLS does."""
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"tcp://127.0.0.1:{server.getsockname()[1] if answers else 9}"
        with pytest.raises(RequestError, match=rf"is {nobody}, where no Dask scheduler answers"):
            list(ordered_map(negative, [1], HERE.model_copy(update={"dask_scheduler": nobody})))


def test_a_scheduler_without_workers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKERS", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        where = HERE.model_copy(update={"dask_scheduler": empty.scheduler_address})
        with pytest.raises(RequestError, match=r"has had no worker for .* dask worker tcp://"):
            list(ordered_map(negative, [1], where))


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lexveil.runtime.dask_cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RequestError, match="uv sync --extra dask"):
        list(ordered_map(negative, [1], HERE.model_copy(update={"dask_scheduler": "tcp://127.0.0.1:9"})))


def test_what_kills_every_worker_is_given_up(there: MachineParams) -> None:
    """The last test, because Dask needs a while to replace so many."""
    with pytest.raises(LexveilError, match=r"Dask worker was killed.*machine\.workers"):
        list(ordered_map(die, range(3), there))
