"""Start of worker processes, with single-threaded BLAS and blocked SIGINT."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lexveil.runtime.project import THREADS

# N workers share the machine as N processes; more threads in each would only compete for cores.
ONE_THREAD = dict.fromkeys(THREADS, "1")

_starting = threading.RLock()


@contextmanager
def starting_workers() -> Iterator[None]:
    """Make processes that start in this block inherit single-threaded BLAS and blocked SIGINT.

    A terminal sends Ctrl-C to the whole process group. Only this process handles it, by ending the
    others. It does not handle it while another process starts, which would otherwise lack its
    instructions and print an error.
    """
    with _starting:  # otherwise one of two threads would undo the changes of the other
        before = {name: os.environ.get(name) for name in ONE_THREAD}
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
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
