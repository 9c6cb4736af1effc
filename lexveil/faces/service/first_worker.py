"""The first worker processes of the service. They are forked from a helper process that imports
modules while the service starts.

This module is separate because a forked process imports it before it has the environment variables
that other modules need.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from multiprocessing import forkserver
from typing import Any

from uvicorn import Config
from uvicorn._subprocess import subprocess_started
from uvicorn.supervisors.multiprocess import Process

from lexveil.base.runtime.project import ONE_THREAD


def preload_workers() -> None:
    """Start the helper process from which the first workers are forked. The helper imports the
    modules that workers need, while the service process gets ready.

    The helper draws no random numbers, because workers would inherit the state of its random
    generator. A terminal sends Ctrl-C to the whole process group, and only the service process
    handles it.
    """
    os.environ |= ONE_THREAD
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        multiprocessing.get_context("forkserver").set_forkserver_preload(
            ["lexveil.faces.service.preload"]
        )
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def forked(function: Callable[..., None], *arguments: Any) -> Any:
    """Create, without starting it, a forked process that runs a function with the environment of
    the current process.
    """
    given = (dict(os.environ), function, arguments)
    return multiprocessing.get_context("forkserver").Process(target=_begin, args=given)


class FirstWorker(Process):
    """A forked worker process. The workers that later replace it start a new interpreter, because
    installed packages may have changed.
    """

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.process: Any = forked(subprocess_started, config, self.target, sockets, None)


def _begin(
    environment: dict[str, str], function: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()  # remove the environment of the fork server
    os.environ.update(environment)
    function(*arguments)
