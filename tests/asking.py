"""Helpers that make requests, by a command of `lexveil`, or by the options of a request as keyword
arguments.
"""

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from lexveil.faces.cli.main import main
from lexveil.io.request import FileRequest
from lexveil.release.adapters import files
from lexveil.release.adapters.files import PrivatizedFiles
from lexveil.release.looking import preview as looking
from lexveil.release.looking.preview import Preview

# For a process of its own: the meaning of an epsilon is estimated from few words.
ESTIMATE_QUICKLY = """
import lexveil.readers.estimate, lexveil.readers.public_words
lexveil.readers.estimate.DRAWS = 256
lexveil.readers.public_words.WORDS_OF_A_BAND = 30
"""


def until(condition: Callable[[], Any], patience: float = 1800.0) -> Any:
    """Wait until something holds, and give it; nothing is measured by the patience."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return value


def no_network(patch: pytest.MonkeyPatch) -> None:
    """Make every use of the network fail."""
    refuse = Mock(side_effect=AssertionError("something asked for the network"))
    for name in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, name, refuse)
    patch.setattr(socket, "getaddrinfo", refuse)


def command(*arguments: object) -> int:
    """The exit code of `lexveil ...`, also where the arguments are none that it could read."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)


def privatize_file(
    source: Path | str,
    target: Path | str,
    *,
    project: Any = None,
    model: Any = None,
    hooks: Any = None,
    **how: Any,
) -> PrivatizedFiles:
    """Rewrite a file or a folder."""
    return files.privatize_file(
        source, target, FileRequest.of(how), project=project, model=model, hooks=hooks
    )


def preview(
    source: Path | str, n_rows: int, *, project: Any = None, model: str | None = None, **how: Any
) -> Preview:
    """Rewrite the first rows."""
    request = FileRequest.of(how | {"mode": "experiment"})
    return looking.preview(source, n_rows, request, project=project, model=model)
