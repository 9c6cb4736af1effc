"""The process of a worker: it receives one function, then items, and answers each item by what the
function makes of it.

``lexveil.io.execution.pool`` starts these processes, which are Lexveil's own: none of them runs the
script of the program again.
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
    """Run a worker whose parent holds the other end of a socket."""
    take_process()
    hide_messages()
    _work(socket.socket(fileno=descriptor))


def fork_workers(descriptor: int, module: str) -> None:
    """Import a module, then fork a worker for each socket that the parent sends, until the parent
    ends or closes the connection.
    """
    take_process()
    hide_messages()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the workers here
    with suppress(ImportError):
        importlib.import_module(module)
    control = socket.socket(fileno=descriptor)
    while received := socket.recv_fds(control, 1, 1)[1]:
        if os.fork() == 0:
            control.close()
            _work(socket.socket(fileno=received[0]))
        os.close(received[0])


def _work(parent: socket.socket) -> NoReturn:
    """Answer the items of the parent until it closes the connection; this process then ends."""
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
    """Receive items while other items are worked on; end this process once the parent has gone."""
    with suppress(EOFError, OSError):
        while True:
            items.put(connection.recv())
    os._exit(0)


def _answer(
    connection: Connection, opened: Callable[[], Callable[[Any], Any]], item: object
) -> None:
    """Send to the parent whether the function returned, and its result or its exception."""
    try:
        answer = pickle.dumps((True, opened()(item)))
    except Exception as error:
        frames = "".join(traceback.format_tb(error.__traceback__))
        error.add_note(f"in a worker process:\n{frames}")
        answer = pickle.dumps((False, error))
    connection.send_bytes(answer)


def open_shared(descriptor: int, pickled: bytes, bounds: list[tuple[int, int]]) -> Any:
    """Unpickle a value whose arrays lie in a file, which this process maps into its memory.

    The mapping is private: a process that writes to an array gets its own copies of those pages.
    """
    view = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY))
    os.close(descriptor)  # the mapping has its own descriptor
    return pickle.loads(pickled, buffers=[view[start:end] for start, end in bounds])
