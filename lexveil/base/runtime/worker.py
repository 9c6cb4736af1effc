"""Main function of a worker process. A worker receives one function, then items, and sends back the
function's result for each item.

``lexveil.io.execution.pool`` starts these processes. A worker does not run the script of the main
program again.
"""

from __future__ import annotations

import importlib
import mmap
import os
import pickle
import queue
import signal
import socket
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from lexveil.base.absent import take_process
from lexveil.base.runtime.crash import hide_messages


def main(descriptor: int) -> None:
    """Run the loop of a worker process until the parent closes the connection.

    Args:
        descriptor: file descriptor of the worker's end of a socket; the parent holds the other end.
    """
    take_process()
    hide_messages()
    _work(socket.socket(fileno=descriptor))


def fork_workers(descriptor: int, module: str) -> None:
    """Import a module, then fork a worker for each socket that the parent sends, until the parent
    ends or closes the connection.
    """
    take_process()
    hide_messages()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # this process does not wait for its workers
    with suppress(ImportError):
        importlib.import_module(module)
    control = socket.socket(fileno=descriptor)
    while received := socket.recv_fds(control, 1, 1)[1]:
        if os.fork() == 0:
            control.close()
            _work(socket.socket(fileno=received[0]))
        os.close(received[0])


def _work(parent: socket.socket) -> NoReturn:
    """Process the items that the parent sends, then end this process when the parent closes the
    connection.
    """
    with suppress(EOFError, OSError):
        _, files, _, _ = socket.recv_fds(parent, 1, 1)
        if files:
            _answer_items(Connection(parent.detach()), files[0])
    os._exit(0)


def _answer_items(connection: Connection, file: int) -> None:
    pickled, bounds = connection.recv()
    opened = cache(lambda: open_shared(file, pickled, bounds))
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, items), daemon=True).start()
    while True:
        _answer(connection, opened, items.get())


def _receive(connection: Connection, items: queue.SimpleQueue[Any]) -> None:
    """Receive items from the parent in a thread, while the main thread processes earlier items. If
    the parent has ended, end this process.
    """
    with suppress(EOFError, OSError):
        while True:
            items.put(connection.recv())
    os._exit(0)


def _answer(
    connection: Connection, opened: Callable[[], Callable[[Any], Any]], item: object
) -> None:
    """Apply the function to one item, and send the parent its result or its exception."""
    try:
        answer = pickle.dumps((True, opened()(item)))
    except Exception as error:
        frames = "".join(traceback.format_tb(error.__traceback__))
        error.add_note(f"in a worker process:\n{frames}")
        answer = pickle.dumps((False, error))
    connection.send_bytes(answer)


def open_shared(descriptor: int, pickled: bytes, bounds: list[tuple[int, int]]) -> Any:
    """Unpickle a value whose arrays are stored in a shared file, which this process maps into its
    memory.

    The mapping is private: if a process writes to an array, it gets its own copies of those pages.
    """
    view = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY))
    os.close(descriptor)  # the mapping has its own descriptor
    return pickle.loads(pickled, buffers=[view[start:end] for start, end in bounds])
