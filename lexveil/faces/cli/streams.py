"""Handling of standard input, output and error in every state in which a caller may leave them:
closed, a broken pipe, a full disk, or an encoding that lacks characters.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO

_UNSAID: list[OSError] = []  # reasons why results could not be printed


def prepare_streams() -> None:
    """Prepare the standard streams: a closed stream's file descriptor is not reused by another
    file, and a character missing from the encoding does not abort a command.

    Streams that replace the process's own streams stay unchanged.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # os.open takes the lowest free number
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stdout is not None and sys.stdout is sys.__stdout__:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def say(text: str, stream: Any) -> None:
    """Print the result of a command that is done. A failure to print is reported later, by
    ``end_streams``.

    Raises:
        BrokenPipeError: if the program that reads the output has closed the pipe.
    """
    try:
        print(text, file=stream)
    except BrokenPipeError:
        raise
    except OSError as error:
        if stream is not sys.stderr:
            _UNSAID.append(error)


def end_streams() -> str | None:
    """Flush standard output at the end of a command, and return the reason if it cannot be written,
    or None.

    Returns:
        The reason in words; None if all output is written.

    Raises:
        BrokenPipeError: if the program that reads the output has closed the pipe.
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
    """Discard the buffered rest of a stream that cannot be written. Otherwise the interpreter tries
    to write it again when the process ends, and prints an error.
    """
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def end_messages() -> None:
    """Flush standard error at the end of a command. Messages that cannot be written are lost,
    because no other stream could report them.
    """
    try:
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)
