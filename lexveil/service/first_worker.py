"""How the first workers of a service begin: forked, in place of started anew.

In a module of its own: the forked process imports it before it has the environment by which others are imported.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from socket import socket as Socket
from typing import Any

from uvicorn import Config
from uvicorn._subprocess import subprocess_started
from uvicorn.supervisors.multiprocess import Process


class FirstWorker(Process):
    """A worker that is forked from a process which imported what it needs while the parent began.

    Those that take its place start anew: what is installed may have changed.
    """

    def __init__(self, config: Config, sockets: list[Socket]) -> None:
        super().__init__(config, sockets)
        given = (dict(os.environ), config, self.target, sockets)
        self.process: Any = multiprocessing.get_context("forkserver").Process(target=_begin, args=given)


def _begin(environment: dict[str, str], config: Config, target: Callable[..., None], sockets: list[Socket]) -> None:
    os.environ.clear()  # that of the process it was forked from
    os.environ.update(environment)
    subprocess_started(config, target, sockets, None)
