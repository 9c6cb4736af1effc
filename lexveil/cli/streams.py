"""Standard input, output and error in every state that a caller leaves them in: closed, a pipe that
breaks, a full disk, an encoding that lacks characters.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

_UNSAID: list[OSError] = []  # why results could not be printed


def prepare_streams() -> None:
    """Prepare the standard streams: no file gets the number of a closed stream, no failed message
    ends a release, and no character that an encoding lacks ends a command.

    Streams that somebody has put in the place of the process's own are left as they are.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    elif sys.stderr is sys.__stderr__:
        sys.stderr = _forgiving(sys.stderr)
    if sys.stdout is not None and sys.stdout is sys.__stdout__:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _forgiving(stream: Any) -> io.TextIOWrapper:
    kept = io.BufferedWriter(_Forgiving(stream.fileno()))
    return io.TextIOWrapper(
        kept, stream.encoding, "backslashreplace", write_through=True, line_buffering=True
    )


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
    drop_output()
    last = _UNSAID.pop()
    _UNSAID.clear()
    return last.strerror or str(last)


def drop_output() -> None:
    """Discard the output that standard output still holds and cannot write: otherwise the
    interpreter tries again to write it as the process ends, and prints an error.
    """
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Forgiving(io.RawIOBase):
    """Standard error; what it does not take is lost, and nobody could be told."""

    def __init__(self, number: int) -> None:
        self.number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.number

    def isatty(self) -> bool:
        return os.isatty(self.number)

    def write(self, content: Any) -> int:
        with contextlib.suppress(OSError):
            return os.write(self.number, content)
        return len(content)
