"""How the first processes of a service begin: forked of one that imports what they need while the
parent begins.

In a module of its own: a forked process imports it before it has the environment by which others
are imported.
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


def forked(function: Callable[..., None], *arguments: Any) -> Any:
    """A process for a function, not yet started, with this one's environment."""
    given = (dict(os.environ), function, arguments)
    return multiprocessing.get_context("forkserver").Process(target=_begin, args=given)


class FirstWorker(Process):
    """A worker that is forked; those that take its place start anew: what is installed may have
    changed.
    """

    def __init__(self, config: Config, sockets: list[Socket]) -> None:
        super().__init__(config, sockets)
        self.process: Any = forked(subprocess_started, config, self.target, sockets, None)


def _begin(
    environment: dict[str, str], function: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()  # that of the process it was forked from
    os.environ.update(environment)
    function(*arguments)
