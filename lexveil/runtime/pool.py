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

ALIGNMENT = 64  # bytes; arrays in a shared file start at cache lines


def ordered_map(
    function: Callable[[A], B], items: Iterable[A], where: MachineParams | int
) -> Generator[B, None, None]:
    """Yield ``function(item)`` in order, with at most ``workers + 2`` items in progress.

    If this generator ends for any reason (an error, Ctrl-C), the workers end at once; on a cluster,
    the work of this process ends. ``function`` must not depend on where it runs.

    Args:
        function: picklable.
        items: picklable.
        where: a machine, whose dask_scheduler names a cluster, or which has a number of workers; or
            a number of processes of this machine, where 1 is this process.

    Raises:
        LexveilError: if a worker was killed. Errors of ``function`` are raised here.
        RequestError: if Dask is not installed, or the named cluster does not exist.
    """
    if isinstance(where, int) or where.dask_scheduler is None:
        return process_map(function, items, where if isinstance(where, int) else where.workers)
    try:
        from lexveil.runtime.dask_cluster import cluster_map
    except ModuleNotFoundError:
        raise RequestError(
            "lexveil.toml: machine.dask_scheduler needs Dask, which is not installed; `uv "
            "sync --extra dask` brings it"
        ) from None
    return cluster_map(function, items, where)


def process_map(
    function: Callable[[A], B], items: Iterable[A], workers: int
) -> Generator[B, None, None]:
    """Do the work of ``ordered_map`` with processes of this machine; one worker means this process.

    Raises:
        LexveilError: if a worker was killed. Errors of ``function`` are raised here.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    with Workers(function, workers) as started:
        yield from started.map(items)


@contextmanager
def prepared_workers(module: str) -> Iterator[None]:
    """Fork workers that start in this block from a server process that imports a module once.

    The server process imports the module while this process does other things. It has one Python
    thread, and stays for the next block until this process ends. It draws no random numbers: a
    worker must not draw from a generator that existed in the server process.
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
    """Return the preparation data of a ``multiprocessing`` child; without the program's script if
    ``_starting`` says so.

    A child runs that script again, to find functions of ``__main__``. A script that calls
    ``lexveil.privatize`` without checking its ``__name__`` would start itself in each worker, with
    all its imports.
    """
    data = _prepare(name)
    if getattr(_starting, "without_main", False):
        data = {key: value for key, value in data.items() if not key.startswith("init_main_")}
    return data


# Replace it once: processes that other threads start are prepared as usual.
spawn.get_preparation_data = _preparation


class Workers(Generic[A, B]):
    """Processes of this machine that run one function, for any number of maps until this context is
    left.

    Each worker is a process with single-threaded BLAS and gets ``function`` once, pickled. If
    ``function`` holds arrays, all workers map the bytes of the arrays from one file, so that
    unmodified pages are in memory once. A worker starts when there is an item for it, and ends with
    this context or when this process dies.

    Args:
        function: picklable; must not depend on where it runs. If it comes from the program's own
            script, workers run that script again. Otherwise they do not, and no item may come from
            it.
        workers: largest number of workers.
    """

    def __init__(self, function: Callable[[A], B], workers: int) -> None:
        self.workers = workers
        with ExitStack() as stack:
            # Do not fork this process: DuckDB and Arrow run threads, which a child would inherit in
            # a broken state.
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
        """Yield the results of the function in the order of the items, with at most ``workers + 2``
        items in progress.

        If this generator ends early for any reason (an error, Ctrl-C), the workers end at once.

        Args:
            items: picklable.

        Raises:
            LexveilError: if a worker was killed. Errors of the function are raised here.
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
                    "(lexveil.toml: machine.workers)"
                ) from None
            raise


class Shared:
    """A picklable value for other processes, with the bytes of its arrays in a file that they map
    into memory.

    The mapping is private: a process that writes to an array gets its own copies of those pages.
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

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _open_shared, (reduction.DupFd(self.file.fileno()), self.pickled, self.bounds)


def _open_shared(descriptor: Any, pickled: bytes, bounds: list[tuple[int, int]]) -> object:
    number = descriptor.detach()
    view = memoryview(mmap.mmap(number, 0, access=mmap.ACCESS_COPY))
    os.close(number)  # the mapping has its own descriptor
    return pickle.loads(pickled, buffers=[view[start:end] for start, end in bounds])


_function: Callable[[Any], Any]  # the function of this worker


def _begin(function: Any, watched: Connection, environment: dict[str, str]) -> None:
    """Turn this process into a worker, which ends when the other end of ``watched`` is closed."""
    # a forked worker has the environment of its server process, which may be older
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
