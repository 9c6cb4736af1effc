"""Parallel work of a stage on a Dask cluster, through the cluster's scheduler.

Only this process and its own workers pickle values. A scheduler runs any code that it receives, and
texts pass through it: docs/how-to/clusters.md explains how to secure a scheduler.
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

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.crash import short_report
from lexveil.base.runtime.hashes import code_hash
from lexveil.io.config import MachineParams

A = TypeVar("A")
B = TypeVar("B")

# Messages of a Dask scheduler or worker that lacks this code.
FOREIGN = re.compile(r"deserialization of the task graph|No module named '(lexveil|tasks)\b")
ANSWER = 10.0  # seconds that a scheduler may take to answer
WORKERS = 60.0  # seconds to wait while there is no worker, at the start or later
LOOK = 5.0  # seconds between two checks for workers while a result is awaited

# Items may be large, because they are batches of texts. Without this setting Dask would print a
# warning.
QUIET = {"distributed.admin.large-graph-warning-threshold": "1TB"}


class PickledPayload:
    """A value as bytes, which only a worker unpickles.

    Dask prints the arguments of a failed task, and its scheduler unpickles the values that it
    passes on. With this class, both see bytes only.
    """

    __slots__ = ("buffers", "pickled")

    def __init__(self, value: object) -> None:
        self.buffers: list[Any] = []
        self.pickled: bytes = pickle.dumps(value, buffer_callback=self.buffers.append)

    def open(self) -> Any:
        """Return the unpickled value."""
        return pickle.loads(self.pickled, buffers=self.buffers)


_functions: dict[str, PickledPayload] = {}  # functions that this worker has received, by name
_opened: dict[str, Callable[[Any], Any]] = {}


class FunctionPlugin(WorkerPlugin):  # type: ignore[misc]
    """Dask plugin that sends a function to every worker, including workers that start later, so
    that a task can run on any worker.
    """

    def __init__(self, name: str, function: PickledPayload) -> None:
        self.name = name
        self.function = function

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        """Store the pickled function on the worker. The first task unpickles it, so that an error
        reaches the user.
        """
        _functions[self.name] = self.function

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Remove the function from the worker."""
        _functions.pop(self.name, None)
        _opened.pop(self.name, None)


@cache
def build_hash() -> str:
    """Return a text that consists of the code hash, the Python version and the NumPy version. It
    must be equal on all workers, so that results do not depend on the worker.
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
    # Do not pass on the error's message, because workers log it and it may contain a text.
    except Exception as error:
        raise RuntimeError(f"{type(error).__name__} in {short_report(error)}") from None


def cluster_map(
    function: Callable[[A], B], items: Iterable[A], machine: MachineParams
) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order, computed by the workers of a Dask cluster. At most two
    more items than the cluster has threads are in progress.

    ``function`` is sent to each worker once. If a worker dies, its results and its items in
    progress are computed again.

    Raises:
        RequestError: if the scheduler does not answer or has no workers, or a worker has other
            code.
        LexveilError: if an item killed several workers, if the scheduler or all workers were lost,
            or if ``function`` raised a LexveilError.
        RuntimeError: if ``function`` raised another exception. The error names that exception and
            its place in the code; its message stays on the worker.
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
            # The cluster stores items until they are cancelled. Cancelling must neither delay
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
    """Return the result of a Dask future. Wait as long as there are workers, or a worker may soon
    return.

    Raises:
        LexveilError: if there was no worker for ``WORKERS`` seconds.
    """
    alone = 0.0
    while alone < WORKERS:
        try:
            return future.result(timeout=LOOK)
        except TimeoutError:
            if future.done():  # the TimeoutError may come from the task itself
                return future.result()
        alone = 0.0 if client.nthreads() else alone + LOOK
    raise LexveilError(
        f"the Dask cluster lost its last worker {WORKERS:.0f} s ago; if memory ran out, use "
        "fewer workers (lexveil.toml: machine.workers) or machines with more memory"
    )


def _explained(error: Exception, client: Client, address: str) -> Exception:
    """Return the error to raise for an error of the cluster, with advice if the cause is known."""
    if isinstance(error, KilledWorker):
        return LexveilError(
            "a Dask worker was killed, and so were the workers that repeated its task; if "
            "memory ran out, use fewer workers (lexveil.toml: machine.workers) or machines "
            "with more memory"
        )
    if FOREIGN.search(str(error)):
        return RequestError(
            "the Dask scheduler or a worker lacks the code of Lexveil, or has another "
            "version of it; install the same version on all machines and start them again"
        )
    if isinstance(error, CancelledError) or (
        isinstance(error, OSError) and client.status != "running"
    ):
        return LexveilError(
            f"the connection to the Dask scheduler {address} was lost; run "
            "again when the scheduler answers"
        )
    return error


async def _identity(address: str) -> str:
    """Return the server type that the Dask server at an address reports about itself.

    Dask's client would wait forever for a server that accepts a connection and then sends nothing,
    such as a server that expects TLS. Dask's own configuration determines the TLS settings.
    """
    with dask.config.set({"distributed.comm.timeouts.connect": ANSWER}):
        async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
            return str((await asyncio.wait_for(server.identity(), ANSWER))["type"])


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Yield a Dask client of the scheduler at an address. The scheduler must have a worker."""
    if address.startswith("tls:") and not Security().get_connection_args("client").get(
        "ssl_context"
    ):
        raise RequestError(
            f"lexveil.toml: machine.dask_scheduler is {address}, but Dask's own configuration "
            "names no certificates; "
            "set distributed.comm.tls.ca-file and client.cert there, as "
            "docs/how-to/clusters.md says"
        )
    try:
        if (what := asyncio.run(_identity(address))) != "Scheduler":
            raise ValueError(what)
        client = Client(address, timeout=ANSWER, set_as_default=False)
    # a server of another protocol can cause a MemoryError
    except (OSError, TimeoutError, ValueError, MemoryError) as error:
        raise RequestError(
            f"lexveil.toml: machine.dask_scheduler is {address}, but no Dask scheduler "
            f"answers at this address ({type(error).__name__}); start one there, or remove "
            "the key. The address of a scheduler that requires TLS is tls://HOST:PORT"
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
