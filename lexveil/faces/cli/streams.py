"""Standard input, output and error in every state that a caller leaves them in: closed, a pipe that
breaks, a full disk, an encoding that lacks characters.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO

_UNSAID: list[OSError] = []  # why results could not be printed


def prepare_streams() -> None:
    """Prepare the standard streams: no file gets the number of a closed stream, and no character
    that an encoding lacks ends a command.

    Streams that somebody has put in the place of the process's own are left as they are.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stdout is not None and sys.stdout is sys.__stdout__:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def say(text: str, stream: Any) -> None:
    """Print the result of a command, which is done by then; ``end_streams`` tells where it cannot
    be written.

    Raises:
        BrokenPipeError: if nobody reads it.
    """
    try:
        print(text, file=stream)
    except BrokenPipeError:
        raise
    except OSError as error:
        if stream is not sys.stderr:
            _UNSAID.append(error)


def end_streams() -> str | None:
    """Write what standard output still holds.

    Returns:
        Why it cannot be written, in words; None if it was.

    Raises:
        BrokenPipeError: if nobody reads it.
    """
    if sys.stdout is None:
        return None
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _UNSAID.append(error)
    if not _UNSAID:
        return None
    drop(sys.stdout)
    last = _UNSAID.pop()
    _UNSAID.clear()
    return last.strerror or str(last)


def drop(stream: TextIO) -> None:
    """Discard what a stream still holds and cannot write: otherwise the interpreter tries again to
    write it as the process ends, and prints an error.
    """
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def end_messages() -> None:
    """Write the messages that standard error still holds; those that it does not take are lost, and
    nobody could be told.
    """
    try:
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)
