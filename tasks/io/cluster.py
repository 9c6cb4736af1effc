"""The parts of a stage on a Dask cluster: of this machine, or of many that a scheduler speaks for.

What travels is pickled by this process and its own workers, and nobody else. A scheduler runs whatever code it is
sent, and texts pass through it: docs/clusters.md says what it takes to be trusted with that.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import tempfile
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import dask
import numpy as np
from distributed import Client, Future, KilledWorker, LocalCluster, Worker, WorkerPlugin
from distributed.protocol import pickle
from distributed.security import Security

from tasks.errors import LexveilError, RequestError
from tasks.io.params import MachineParams
from tasks.io.pool import starting_workers

A = TypeVar("A")
B = TypeVar("B")

CODE = Path(__file__).resolve().parents[1]
ANSWER = 10.0  # seconds that a scheduler may take to answer
WORKERS = 60.0  # seconds that its first worker may take to come

# No web pages, whatever their address.
NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


class Sealed:
    """A value as bytes, which only a worker opens: Dask neither looks into it nor prints it.

    Its log of a task that failed shows what the task was given, and its scheduler unpickles what it passes on.
    """

    __slots__ = ("buffers", "pickled")

    def __init__(self, value: object) -> None:
        self.buffers: list[Any] = []
        self.pickled: bytes = pickle.dumps(value, buffer_callback=self.buffers.append)

    def open(self) -> Any:
        """The value again."""
        return pickle.loads(self.pickled, buffers=self.buffers)


_functions: dict[str, Sealed] = {}  # of a worker: what it was sent, by name
_opened: dict[str, Callable[[Any], Any]] = {}


class Delivery(WorkerPlugin):  # type: ignore[misc]
    """Brings a function to every worker, also to those that come later. A task that needs it can then go to any."""

    def __init__(self, name: str, function: Sealed) -> None:
        self.name = name
        self.function = function

    def setup(self, worker: Worker) -> None:  # noqa: ARG002 - Dask's signature
        """Keep it. It is opened by the first task, where an error is one that people see."""
        _functions[self.name] = self.function

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Forget it."""
        _functions.pop(self.name, None)
        _opened.pop(self.name, None)


@cache
def code_hash() -> str:
    """What must be the same on every worker, or results could depend on who made them: code, Python and NumPy."""
    found = hashlib.sha256(f"{platform.python_version()} {np.__version__}".encode())
    for file in sorted(CODE.rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def _call(name: str, item: Sealed, code: str) -> Any:
    if code_hash() != code:
        raise RequestError(
            f"a Dask worker on {platform.node()} has another version of Lexveil, Python or NumPy than this process; "
            "install the same on all machines and start the workers again"
        )
    if name not in _opened:
        _opened[name] = _functions[name].open()
    return _opened[name](item.open())


def cluster_map(function: Callable[[A], B], items: Iterable[A], machine: MachineParams) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order, at most two items more under way than the cluster has threads.

    ``function`` is sent to each worker once. What a worker had done or was doing when it died is done again by another.

    Raises:
        RequestError: if the scheduler does not answer or has no workers, or a worker has other code.
        LexveilError: if an item killed several workers, or the scheduler was lost. What ``function`` raises is raised
            here.
    """
    name = f"lexveil-{uuid.uuid4().hex}"
    with _connected(machine) as client:
        pending: deque[Future] = deque()
        try:
            client.register_plugin(Delivery(name, Sealed(function)), name=name)
            for item in items:
                pending.append(client.submit(_call, name, Sealed(item), code_hash(), pure=False))
                if len(pending) > sum(client.nthreads().values()) + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except Exception as error:
            raise _said(error, machine) from None
        finally:
            if client.status == "running":
                client.cancel(list(pending), force=True)
                client.unregister_worker_plugin(name)


def _said(error: Exception, machine: MachineParams) -> Exception:
    """The error that people are told."""
    if isinstance(error, KilledWorker):
        return LexveilError(
            "a Dask worker was killed, and so were those that tried the same again; if memory ran out, give fewer "
            "workers (params.yaml: machine.workers) or more memory"
        )
    if isinstance(error, CancelledError):
        return LexveilError(
            f"the Dask scheduler {machine.dask_scheduler or 'of this process'} was lost; run again when it is back"
        )
    return error


@contextmanager
def _connected(machine: MachineParams) -> Iterator[Client]:
    """A client of the scheduler that is named, or of a cluster that lives as long as this block."""
    address = machine.dask_scheduler
    if address is None:
        with _local_cluster(machine) as cluster, Client(cluster, set_as_default=False) as client:
            yield client
        return
    try:
        # What takes part in TLS is for Dask's own configuration to say.
        with dask.config.set({"distributed.comm.timeouts.connect": ANSWER}):
            client = Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise RequestError(
            f"params.yaml: machine.dask_scheduler is {address}, where no Dask scheduler answers "
            f"({type(error).__name__}); start one there, or set machine.executor to local"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            raise RequestError(
                f"the Dask scheduler at {address} has had no worker for {WORKERS:.0f} s; start some: "
                f"dask worker {address}"
            ) from None
        yield client


@contextmanager
def _local_cluster(machine: MachineParams) -> Iterator[Any]:
    """Workers of one thread each. They listen on the loopback only, and by TLS: other users of this machine are others.

    Their memory is not limited by Dask, which would write texts to disk before it killed them.
    """
    with (
        tempfile.TemporaryDirectory(prefix="lexveil-dask-") as folder,
        dask.config.set(NO_PAGES),
    ):
        with starting_workers():
            cluster = LocalCluster(
                n_workers=machine.workers,
                threads_per_worker=1,
                memory_limit=0,
                host="127.0.0.1",
                security=Security.temporary(),
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                local_directory=folder,
                silence_logs=logging.CRITICAL,  # an error is raised here, and said once
            )
        logging.getLogger("distributed.nanny").setLevel(logging.WARNING)  # says when a worker is replaced
        with cluster:
            yield cluster
