"""Work on a Dask cluster: order, what is raised, what is killed, and what cannot be reached."""

import logging
import socket
import sys
import time
from operator import length_hint

import pytest
from pool_functions import DieOnce, die, fail, negative, refuse, sleep

from lexveil.base.errors import LexveilError, RequestError
from lexveil.io.execution.pool import ordered_map
from tests.runtime.conftest import machine_behind

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")
cluster = pytest.importorskip("lexveil.io.execution.dask_cluster")


def test_order_and_how_much_is_under_way(there):
    """The scheduler's workers count, not those of params.yaml."""
    items = iter(range(30))
    results = ordered_map(negative, items, there)
    assert next(results) == 0
    assert length_hint(items) == 30 - (3 + 2)
    assert list(results) == [-number for number in range(1, 30)]
    assert list(ordered_map(negative, [], there)) == []


def test_what_a_task_raises_is_raised_here(there):
    # what it says may be a text
    with pytest.raises(RuntimeError, match=r"^ValueError in \w+\.py, line \d+$"):
        list(ordered_map(fail, range(9), there))
    with pytest.raises(RequestError, match=r"^no$"):
        list(ordered_map(refuse, ["x"], there))


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path, there):
    """A worker dies in the middle of the first item, when no other worker may have the function
    yet.
    """
    assert list(ordered_map(DieOnce(tmp_path, 0), range(20), there)) == list(range(20))
    tried = [file.name.split("-")[0] for file in tmp_path.glob("*-*")]
    assert tried.count("0") >= 2


def test_a_worker_with_other_code_is_refused(there, monkeypatch):
    monkeypatch.setattr(cluster, "build_hash", lambda: "another")
    with pytest.raises(RequestError, match="another version of Lexveil"):
        list(ordered_map(negative, [1], there))


def test_a_failure_is_logged_without_what_failed(caplog, monkeypatch):
    """Dask's log of a task that failed shows its arguments, which may be texts."""
    with distributed.LocalCluster(
        1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as made:
        logger = logging.getLogger("distributed.worker")
        # whatever other tests have set up
        for name, value in (("disabled", False), ("level", logging.INFO)):
            monkeypatch.setattr(logger, name, value)
        logger.addHandler(caplog.handler)
        with pytest.raises(RequestError, match="no"):
            list(ordered_map(refuse, ["zorblax"], machine_behind(made)))
        logger.removeHandler(caplog.handler)
    assert "Compute Failed" in caplog.text and "zorblax" not in caplog.text


@pytest.mark.parametrize(
    ("lost", "said"), [("worker", "lost its last worker"), ("scheduler", r"tcp://.* was lost")]
)
def test_who_is_lost_in_the_middle_is_said(tmp_path, monkeypatch, lost, said):
    """The only worker with its nanny, who would start it anew; or the scheduler."""

    def items():
        yield str(tmp_path / "mark")
        while not (tmp_path / "mark").exists():
            time.sleep(0.05)
        monkeypatch.setattr(cluster, "WORKERS", 1.0)
        monkeypatch.setattr(cluster, "LOOK", 0.25)
        made.sync(made.workers[0].close if lost == "worker" else made.scheduler.close)

    one = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    )
    with one as made, pytest.raises(LexveilError, match=said):
        list(ordered_map(sleep, items(), machine_behind(made)))


@pytest.mark.parametrize("answers", [True, False])
def test_where_no_scheduler_answers_it_is_said(answers, monkeypatch):
    """Nobody listens at the address, or a server accepts connections and stays silent, as one that
    expects TLS does.
    """
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"tcp://127.0.0.1:{server.getsockname()[1] if answers else 9}"
        with pytest.raises(RequestError, match=rf"is {nobody}, but no Dask scheduler answers"):
            list(ordered_map(negative, [1], machine_behind(nobody)))


def test_a_scheduler_without_workers_is_said(monkeypatch):
    monkeypatch.setattr(cluster, "WORKERS", 0.5)
    none = distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0")
    with (
        none as empty,
        pytest.raises(RequestError, match=r"has had no worker for .* dask worker tcp://"),
    ):
        list(ordered_map(negative, [1], machine_behind(empty)))


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "lexveil.io.execution.dask_cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RequestError, match="uv sync --extra dask"):
        list(ordered_map(negative, [1], machine_behind("tcp://127.0.0.1:9")))


def test_what_kills_every_worker_is_given_up(there):
    """The last test, because Dask needs a while to replace so many."""
    with pytest.raises(LexveilError, match=r"Dask worker was killed.*machine\.workers"):
        list(ordered_map(die, range(3), there))
