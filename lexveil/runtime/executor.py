"""The interface of executors of parallel work, and how each of them starts processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from lexveil.config import MachineParams
from lexveil.runtime.project import THREADS

A = TypeVar("A")
B = TypeVar("B")

# N workers share the machine as N processes; threads of a library inside each would only compete for the cores.
ONE_THREAD = dict.fromkeys(THREADS, "1")


class Executor(Protocol):
    """A bounded, ordered map: ``function(item)`` for each item, in order. Results never depend on which executor."""

    def __call__(
        self, function: Callable[[A], B], items: Iterable[A], machine: MachineParams, /
    ) -> Generator[B, None, None]:
        """Yield the results; closing the generator ends the work."""
        ...


@contextmanager
def starting_workers() -> Iterator[None]:
    """Let processes that start in this block inherit single-threaded BLAS and blocked SIGINT.

    A terminal sends Ctrl-C to the whole group. Only this process handles it, by ending the others; but not while one is
    being started, which would be left without its instructions and complain. Blocking the signal in this thread is not
    enough for that: another thread of this process may receive it.
    """
    with _starting:  # or one of two threads would put back what the other one has set
        yield from _started()


_starting = threading.RLock()


def _started() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    received: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number)) if in_main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if in_main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if received:
            signal.raise_signal(signal.SIGINT)
