"""Parallel work inside a stage: a map over items in order, with a bounded number of items in
progress. Results do not depend on the number of workers.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from multiprocessing.connection import Connection
from typing import Any, BinaryIO, Generic, Self, TypeVar, cast

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.project import ONE_THREAD
from lexveil.io.config import MachineParams

A = TypeVar("A")
B = TypeVar("B")

# bytes; arrays in a shared file start at multiples of this number, which is the size of a cache
# line
ALIGNMENT = 64
# The program of a process. Its arguments are the number of a socket and the search path of this
# process.
PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from lexveil.base.runtime import worker; worker."
KILLED = (
    "a worker process was killed; if memory ran out, use fewer workers (lexveil.toml: "
    "machine.workers)"
)


def ordered_map(
    function: Callable[[A], B], items: Iterable[A], where: MachineParams | int
) -> Generator[B, None, None]:
    """Yield ``function(item)`` for each item in order, computed in parallel with at most ``workers
    + 2`` items in progress.

    If this generator ends for any reason (an error, Ctrl-C), its workers end at once, and its work
    on a cluster is cancelled. ``function`` must not depend on where it runs.

    Args:
        function: a picklable function of a module that can be imported, not of the program's own
            script.
        items: picklable values whose classes can be imported.
        where: settings of a machine, or a number of processes. The settings name a cluster by
            dask_scheduler, or give a number of workers. The number 1 means this process.

    Raises:
        LexveilError: if a worker was killed. Errors of ``function`` are raised, too.
        RequestError: if Dask is not installed, or the named cluster does not exist.
    """
    if isinstance(where, int) or where.dask_scheduler is None:
        return process_map(function, items, where if isinstance(where, int) else where.workers)
    try:
        from lexveil.io.execution.dask_cluster import cluster_map
    except ModuleNotFoundError:
        raise RequestError(
            "lexveil.toml: machine.dask_scheduler needs Dask, which is not installed; `uv "
            "sync --extra dask` installs it"
        ) from None
    return cluster_map(function, items, where)


def process_map(
    function: Callable[[A], B], items: Iterable[A], workers: int
) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order, computed by processes of this machine. One worker means
    this process.

    Raises:
        LexveilError: if a worker was killed. Errors of ``function`` are raised, too.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    with Workers(function, workers) as started:
        yield from started.map(items)


def _start_process(call: str, descriptor: int) -> subprocess.Popen[bytes]:
    """Start a worker process of ``lexveil.base.runtime.worker`` that inherits a socket. The worker
    has single-threaded BLAS and blocks SIGINT.

    A terminal sends Ctrl-C to the whole process group. Only the current process handles the signal,
    and ends the workers.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM + call, str(descriptor), *sys.path],
            env=os.environ | ONE_THREAD,
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class ForkServer:
    """Server process that has imported a module, and forks workers that need no import.

    It imports the module while the current process does other work. It has one Python thread. It
    draws no random numbers, because a worker must not draw from a generator that existed in the
    server process.
    """

    def __init__(self, module: str) -> None:
        self._control, theirs = socket.socketpair()
        call = f"fork_workers(int(sys.argv[1]), {module!r})"
        with theirs:
            self._process = _start_process(call, theirs.fileno())

    def fork(self, theirs: socket.socket) -> None:
        """Fork a worker from the server process. The worker gets the end ``theirs`` of a socket
        pair.
        """
        socket.send_fds(self._control, [b"w"], [theirs.fileno()])

    def close(self) -> None:
        """End the server process. Its workers continue."""
        self._control.close()
        self._process.wait()


_server: ContextVar[ForkServer | None] = ContextVar("_server", default=None)


@contextmanager
def prepared_workers(module: str) -> Iterator[None]:
    """Start a server process that imports a module once. Workers that start in the block are forked
    from that process.
    """
    server = ForkServer(module)
    token = _server.set(server)
    try:
        yield
    finally:
        _server.reset(token)
        server.close()


class WorkerProcess:
    """One worker process, and the connection to it. The worker ends when the connection is closed,
    and also when the current process dies.

    Args:
        shared: the function of the worker.
        server: the process from which the worker is forked; None starts a new interpreter.
    """

    def __init__(self, shared: Shared, server: ForkServer | None) -> None:
        self._socket, theirs = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = None
        with theirs:
            if server is None:
                self._process = _start_process("main(int(sys.argv[1]))", theirs.fileno())
            else:
                server.fork(theirs)
        socket.send_fds(self._socket, [b"f"], [shared.file.fileno()])
        self._connection = Connection(self._socket.dup().detach())
        self._connection.send((shared.pickled, shared.bounds))

    def call(self, item: object) -> Any:
        """Apply the function to an item in the worker, and return the result.

        Raises:
            LexveilError: if the worker was killed. Errors of the function are raised, too.
        """
        try:
            self._connection.send(item)
            is_done, result = self._connection.recv()
        except (EOFError, ConnectionError):
            raise LexveilError(KILLED) from None
        if is_done:
            return result
        raise cast(BaseException, result)

    def end(self) -> None:
        """Kill the worker at once, even during its work."""
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Wait until the worker has ended."""
        if self._process is not None:
            self._process.wait()
        self._connection.close()
        self._socket.close()


class Workers(Generic[A, B]):
    """Pool of processes of this machine that run one function, for any number of maps until this
    context ends.

    Each worker is a process with single-threaded BLAS and gets ``function`` once, pickled. If
    ``function`` holds arrays, all workers map the bytes of the arrays from one file, so that
    unmodified pages are in memory once. A worker starts when there is an item for it, and ends with
    this context or when the current process dies. A thread of the current process waits for each
    worker.

    Args:
        function: picklable function as in ``ordered_map``; it must not depend on where it runs.
        workers: largest number of workers.
    """

    def __init__(self, function: Callable[[A], B], workers: int) -> None:
        self.workers = workers
        self._server = _server.get()
        self._processes: list[WorkerProcess] = []
        self._is_ended = False
        self._lock = threading.Lock()
        self._of_thread = threading.local()
        with ExitStack() as stack:
            # Do not fork this process: DuckDB and Arrow run threads, and a child would inherit them
            # in a broken state.
            self._shared = Shared(function, stack.enter_context(tempfile.TemporaryFile()))
            stack.callback(self._close)
            self._threads = stack.enter_context(ThreadPoolExecutor(workers))
            stack.callback(self._end)
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._opened.close()

    def _end(self) -> None:
        """Kill all workers at once, and start no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_ended = True
            for process in self._processes:
                process.end()

    def _close(self) -> None:
        for process in self._processes:
            process.close()

    def _begin(self) -> WorkerProcess:
        process = WorkerProcess(self._shared, self._server)
        with self._lock:
            self._processes.append(process)
            if self._is_ended:
                process.end()
        return process

    def _call(self, item: A) -> B:
        """Pass an item to the worker that belongs to the current thread, and return the result. The
        worker starts with its first item.
        """
        if not hasattr(self._of_thread, "process"):
            self._of_thread.process = self._begin()
        return cast(B, self._of_thread.process.call(item))

    def map(self, items: Iterable[A]) -> Generator[B, None, None]:
        """Yield the results of the function in the order of the items, with at most ``workers + 2``
        items in progress.

        If this generator ends early for any reason (an error, Ctrl-C), the workers end at once.

        Raises:
            LexveilError: if a worker was killed. Errors of the function are raised, too.
        """
        pending: deque[Future[B]] = deque()
        try:
            for item in items:
                pending.append(self._threads.submit(self._call, item))
                if len(pending) > self.workers + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException:
            self._opened.close()
            raise


class Shared:
    """A picklable value that is passed to other processes. The bytes of its arrays are in a file
    that the processes map into memory (``lexveil.base.runtime.worker.open_shared``).
    """

    def __init__(self, value: object, file: BinaryIO) -> None:
        """Write the arrays of ``value`` into ``file``, which must stay open until all processes
        have started.
        """
        self.file = file
        self.bounds: list[tuple[int, int]] = []
        buffers: list[pickle.PickleBuffer] = []
        self.pickled = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        file.write(bytes(ALIGNMENT))  # an empty file cannot be mapped
        for buffer in buffers:
            start = file.tell()
            file.write(buffer.raw())
            self.bounds.append((start, file.tell()))
            file.write(bytes(-file.tell() % ALIGNMENT))
        file.flush()
