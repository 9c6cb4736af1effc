"""Parts of a stage on the Dask cluster behind a scheduler.

Values are pickled by this process and its own workers only. A scheduler runs whatever code it is
sent, and texts pass through it: docs/how-to/clusters.md says how to secure one.
"""

from __future__ import annotations

import asyncio
import platform
import re
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

import dask
import numpy as np
from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin, rpc
from distributed.protocol import pickle
from distributed.security import Security

from lexveil.config import MachineParams
from lexveil.errors import LexveilError, RequestError
from lexveil.runtime.crash import short_report
from lexveil.runtime.hashes import code_hash

A = TypeVar("A")
B = TypeVar("B")

# Dask's messages where this code is not installed, of a scheduler and of a worker.
FOREIGN = re.compile(r"deserialization of the task graph|No module named '(lexveil|tasks)\b")
ANSWER = 10.0  # seconds that a scheduler may take to answer
WORKERS = 60.0  # seconds without any worker, at the start or later, after which none is waited for
LOOK = 5.0  # seconds between two checks for workers while a result is awaited

# Items may be large: they are batches of texts. Dask would warn that this is a mistake.
QUIET = {"distributed.admin.large-graph-warning-threshold": "1TB"}


class PickledPayload:
    """A value as bytes, which only a worker opens.

    Dask prints the arguments of a failed task, and its scheduler unpickles what it passes on: both
    see only bytes.
    """

    __slots__ = ("buffers", "pickled")

    def __init__(self, value: object) -> None:
        self.buffers: list[Any] = []
        self.pickled: bytes = pickle.dumps(value, buffer_callback=self.buffers.append)

    def open(self) -> Any:
        """The value again."""
        return pickle.loads(self.pickled, buffers=self.buffers)


_functions: dict[str, PickledPayload] = {}  # of a worker: what it was sent, by name
_opened: dict[str, Callable[[Any], Any]] = {}


class FunctionPlugin(WorkerPlugin):  # type: ignore[misc]
    """Sends a function to every worker, later ones too, so that a task can run on any of them."""

    def __init__(self, name: str, function: PickledPayload) -> None:
        self.name = name
        self.function = function

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        """Keep it. The first task opens it, where an error reaches the user."""
        _functions[self.name] = self.function

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Forget it."""
        _functions.pop(self.name, None)
        _opened.pop(self.name, None)


@cache
def build_hash() -> str:
    """What must be the same on every worker, or results could depend on who made them: code, Python
    and NumPy.
    """
    return f"{code_hash()} {platform.python_version()} {np.__version__}"


def _call(name: str, item: PickledPayload, build: str) -> Any:
    if build_hash() != build:
        raise RequestError(
            f"a Dask worker on {platform.node()} has another version of Lexveil, Python or "
            "NumPy than this process; "
            "install the same on all machines and start the workers again"
        )
    if name not in _opened:
        _opened[name] = _functions[name].open()
    try:
        return _opened[name](item.open())
    except (LexveilError, ImportError):
        raise
    except Exception as error:  # workers log what it says, which may be a text
        raise RuntimeError(f"{type(error).__name__} in {short_report(error)}") from None


def cluster_map(
    function: Callable[[A], B], items: Iterable[A], machine: MachineParams
) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order, at most two items more under way than the cluster has
    threads.

    ``function`` is sent to each worker once. Results of a worker that died, and its items under
    way, are made again.

    Raises:
        RequestError: if the scheduler does not answer or has no workers, or a worker has other
            code.
        LexveilError: if an item killed several workers, or the scheduler or all workers were lost.
            A LexveilError of ``function`` is raised here.
        RuntimeError: with name and place of another exception of ``function``; what it says stays
            there.
    """
    name = f"lexveil-{uuid.uuid4().hex}"
    address = str(machine.dask_scheduler)
    with dask.config.set(QUIET), _connected(address) as client:
        pending: deque[Future] = deque()
        try:
            client.register_plugin(FunctionPlugin(name, PickledPayload(function)), name=name)
            for item in items:
                pending.append(
                    client.submit(_call, name, PickledPayload(item), build_hash(), pure=False)
                )
                if len(pending) > sum(client.nthreads().values()) + 1:
                    yield _result(pending.popleft(), client)
            while pending:
                yield _result(pending.popleft(), client)
        except Exception as error:
            raise _explained(error, client, address) from None
        finally:
            # The cluster keeps what it was sent until that is cancelled, which must neither delay
            # Ctrl-C nor hide another error.
            if client.status == "running":
                with suppress(Exception):
                    client.cancel(list(pending), force=True)
                    client.sync(
                        client.scheduler.unregister_worker_plugin,
                        name=name,
                        callback_timeout=ANSWER,
                    )


def _result(future: Future, client: Client) -> Any:
    """The result of ``future``, awaited as long as there are workers or one may soon be back.

    Raises:
        LexveilError: if there was none for ``WORKERS`` seconds.
    """
    alone = 0.0
    while alone < WORKERS:
        try:
            return future.result(timeout=LOOK)
        except TimeoutError:
            if future.done():  # and was in time for the error to be its own
                return future.result()
        alone = 0.0 if client.nthreads() else alone + LOOK
    raise LexveilError(
        f"the Dask cluster lost its last worker {WORKERS:.0f} s ago; if memory ran out, give "
        "fewer workers "
        "(params.yaml: machine.workers) or more memory"
    )


def _explained(error: Exception, client: Client, address: str) -> Exception:
    """The error to raise: one with advice where the cause is known."""
    if isinstance(error, KilledWorker):
        return LexveilError(
            "a Dask worker was killed, and so were those that tried the same again; if "
            "memory ran out, give fewer "
            "workers (params.yaml: machine.workers) or more memory"
        )
    if FOREIGN.search(str(error)):
        return RequestError(
            "the Dask scheduler or a worker does not find the code of Lexveil, or has "
            "another version of it; install "
            "the same on all machines and start them again"
        )
    if isinstance(error, CancelledError) or (
        isinstance(error, OSError) and client.status != "running"
    ):
        return LexveilError(f"the Dask scheduler {address} was lost; run again when it is back")
    return error


async def _identity(address: str) -> str:
    """The type that the server at an address reports of itself.

    Dask's client would wait forever for a server that accepts a connection and then stays silent,
    as one that expects TLS does. Whether and how TLS is used is set in Dask's own configuration.
    """
    with dask.config.set({"distributed.comm.timeouts.connect": ANSWER}):
        async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
            return str((await asyncio.wait_for(server.identity(), ANSWER))["type"])


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address, which has a worker."""
    if address.startswith("tls:") and not Security().get_connection_args("client").get(
        "ssl_context"
    ):
        raise RequestError(
            f"params.yaml: machine.dask_scheduler is {address}, but Dask's own configuration "
            "names no certificates; "
            "set distributed.comm.tls.ca-file and client.cert there, as "
            "docs/how-to/clusters.md says"
        )
    try:
        if (what := asyncio.run(_identity(address))) != "Scheduler":
            raise ValueError(what)
        client = Client(address, timeout=ANSWER, set_as_default=False)
    # the last by what speaks something else
    except (OSError, TimeoutError, ValueError, MemoryError) as error:
        raise RequestError(
            f"params.yaml: machine.dask_scheduler is {address}, where no Dask scheduler answers "
            f"({type(error).__name__}); start one there, or set it to null. One that "
            "requires TLS is "
            "named as tls://HOST:PORT"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            raise RequestError(
                f"the Dask scheduler at {address} has had no worker for {WORKERS:.0f} s; "
                "start some: "
                f"dask worker {address}"
            ) from None
        yield client
