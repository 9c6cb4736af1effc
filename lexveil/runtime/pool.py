"""Parallel work inside a stage: a bounded, ordered map over shards. Results do not depend on the
number of workers.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import forkserver, get_context, reduction, spawn
from multiprocessing.connection import Connection
from typing import Any, BinaryIO, Generic, Self, TypeVar

from lexveil.config import MachineParams
from lexveil.errors import LexveilError, RequestError
from lexveil.runtime.process_start import ONE_THREAD, starting_workers

A = TypeVar("A")
B = TypeVar("B")

ALIGNMENT = 64  # bytes, of every array in a shared file: a cache line


def ordered_map(
    function: Callable[[A], B], items: Iterable[A], where: MachineParams | int
) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order, at most ``workers + 2`` items under way.

    Whatever ends this generator (an error, Ctrl-C) ends the workers at once, on a cluster the work
    of this process. ``function`` must not depend on where it runs.

    Args:
        function: picklable.
        items: picklable.
        where: a machine whose dask_scheduler names a cluster, or else has so many workers; a number
            is that many processes of this machine, one is this process.

    Raises:
        LexveilError: if a worker was killed. What ``function`` raises is raised here.
        RequestError: if Dask is not installed, or there is no cluster where one is named.
    """
    if isinstance(where, int) or where.dask_scheduler is None:
        return process_map(function, items, where if isinstance(where, int) else where.workers)
    try:
        from lexveil.runtime.dask_cluster import cluster_map
    except ModuleNotFoundError:
        raise RequestError(
            "params.yaml: machine.dask_scheduler needs Dask, which is not installed; `uv "
            "sync --extra dask` brings it"
        ) from None
    return cluster_map(function, items, where)


def process_map(
    function: Callable[[A], B], items: Iterable[A], workers: int
) -> Generator[B, None, None]:
    """As ``ordered_map``, by processes of this machine; one worker means this process.

    Raises:
        LexveilError: if a worker was killed. What ``function`` raises is raised here.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    with Workers(function, workers) as started:
        yield from started.map(items)


@contextmanager
def prepared_workers(module: str) -> Iterator[None]:
    """Fork workers that begin in this block from a process that imports a module once.

    It imports while this process does other things, has one thread of Python, and stays until this
    process ends, for the next block. It draws nothing: whatever a worker draws must not come from a
    generator that existed there.
    """
    global _is_prepared  # noqa: PLW0603
    with starting_workers():
        get_context("forkserver").set_forkserver_preload([module])
        forkserver.ensure_running()
    _is_prepared = True
    try:
        yield
    finally:
        _is_prepared = False


_is_prepared = False


_prepare = spawn.get_preparation_data
_starting = threading.local()


def _preparation(name: str) -> dict[str, object]:
    """What a child of ``multiprocessing`` is told; where ``_starting`` says so, without the
    program's script.

    A child runs that script again, to find functions of ``__main__``. A script that calls
    ``lexveil.privatize`` without asking for its own ``__name__`` would so start itself in each
    worker, and all its imports with it.
    """
    data = _prepare(name)
    if getattr(_starting, "without_main", False):
        data = {key: value for key, value in data.items() if not key.startswith("init_main_")}
    return data


# Once and for all: processes that other threads start are prepared as ever.
spawn.get_preparation_data = _preparation


class Workers(Generic[A, B]):
    """Processes of this machine that do one function, for as many maps as there are while they
    last.

    Each worker is a process with single-threaded BLAS and gets ``function`` once, pickled. If that
    is an object that holds arrays, all workers map their bytes from one file: pages that none of
    them writes to take memory once. A worker starts when there is an item for it, and ends when
    this is left, or when this process dies.

    Args:
        function: picklable; must not depend on where it runs. Where it is of the program's own
            script, workers run that again; else they do not, and no item may be of it.
        workers: how many, at most.
    """

    def __init__(self, function: Callable[[A], B], workers: int) -> None:
        self.workers = workers
        with ExitStack() as stack:
            # Not forked from this process: DuckDB and Arrow run threads that a child would inherit
            # half-dead.
            file = stack.enter_context(tempfile.TemporaryFile())
            shared = Shared(function, file)
            self._without_main = b"__main__" not in shared.pickled
            context = get_context("forkserver" if _is_prepared else "spawn")
            watched, self._held = context.Pipe(duplex=False)
            stack.enter_context(self._held)
            stack.enter_context(watched)
            self._executor = stack.enter_context(
                ProcessPoolExecutor(
                    workers,
                    mp_context=context,
                    initializer=_begin,
                    initargs=(shared, watched, dict(os.environ) | ONE_THREAD),
                )
            )
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is not None:
            self._end()
        self._opened.close()

    def _end(self) -> None:
        """End all workers at once."""
        self._held.close()
        self._executor.shutdown(cancel_futures=True)

    def map(self, items: Iterable[A]) -> Generator[B, None, None]:
        """Yield what the function makes of each item, in order, at most ``workers + 2`` of them
        under way.

        Whatever ends this generator before its end (an error, Ctrl-C) ends the workers at once.

        Args:
            items: picklable.

        Raises:
            LexveilError: if a worker was killed. What the function raises is raised here.
        """
        try:
            pending: deque[Future[B]] = deque()
            for item in items:
                with starting_workers():
                    _starting.without_main = self._without_main
                    try:
                        pending.append(self._executor.submit(_call, item))
                    finally:
                        _starting.without_main = False
                if len(pending) > self.workers + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException as error:
            self._end()
            if isinstance(error, BrokenProcessPool):
                raise LexveilError(
                    "a worker process was killed; if memory ran out, give fewer workers "
                    "(params.yaml: machine.workers)"
                ) from None
            raise


class Shared:
    """A picklable value on its way to other processes, with the bytes of its arrays in a file that
    they map.

    The mapping is private: a process that writes to an array gets its own copies of those pages.
    """

    def __init__(self, value: object, file: BinaryIO) -> None:
        """Write the arrays of ``value`` into ``file``, which stays open until all processes have
        begun.
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

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _open_shared, (reduction.DupFd(self.file.fileno()), self.pickled, self.bounds)


def _open_shared(descriptor: Any, pickled: bytes, bounds: list[tuple[int, int]]) -> object:
    number = descriptor.detach()
    view = memoryview(mmap.mmap(number, 0, access=mmap.ACCESS_COPY))
    os.close(number)  # the mapping has its own
    return pickle.loads(pickled, buffers=[view[start:end] for start, end in bounds])


_function: Callable[[Any], Any]  # of this worker


def _begin(function: Any, watched: Connection, environment: dict[str, str]) -> None:
    """Make this process a worker that lives no longer than the other end of ``watched`` is open."""
    # that of the process it was forked from, which may be older
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    global _function  # noqa: PLW0603
    _function = function

    def end() -> None:
        watched.poll(None)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _call(item: Any) -> Any:
    return _function(item)
