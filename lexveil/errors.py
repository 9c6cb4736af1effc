"""The errors people meet: each says what is wrong, where, and what to do.

``RequestError`` means that the request cannot be served as it stands (exit code 2);
``CheckFailed`` means that a run was made and did not hold (exit code 1).
No message quotes a document: logs reach further than the data does.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

# What the system says of a disk, in errors of Python, DuckDB and DVC alike, and what to do about
# it.
ADVICE = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space within that quota",
    errno.EROFS: "make it writable",
    errno.EACCES: "see whose it is and who may write to it",
    errno.EIO: "see whether that disk is broken",
}


def advised(message: str) -> str:
    """Add what to do to a message about a disk; return any other message as it is."""
    for number, advice in ADVICE.items():
        if os.strerror(number) in message:
            return f"{message}; {advice}, and run again: what is done stays done"
    return message


_OPEN, _CLOSE = "\ue000", "\ue001"  # of private use: no font and no file has them


def option(name: str) -> str:
    """A field of a request in a message, which each face calls in its own way: epsilon, --epsilon,
    "epsilon".
    """
    return f"{_OPEN}{name}{_CLOSE}"


class LexveilError(Exception):
    """Base of every error that is shown as one line, without a traceback.

    Its text calls fields of a request as the Python API does; ``told`` calls them as another face
    does.
    """

    exit_code = 1

    def __str__(self) -> str:
        """The message for callers from Python."""
        return self.told(str)

    @property
    def message(self) -> str:
        """The message for a message of another error: fields of a request are not named yet."""
        return super().__str__()

    def told(self, name: Callable[[str], str]) -> str:
        """The message in which a field of a request is called ``name(field)``."""
        return re.sub(f"{_OPEN}(.*?){_CLOSE}", lambda match: name(match[1]), self.message)


class RequestError(LexveilError):
    """The request is wrong: a missing file, a wrong column, a parameter out of range."""

    exit_code = 2


class ParameterError(RequestError):
    """A key of params.yaml, or a parameter of a mechanism, is unknown, mistyped or out of range."""


class MissingArtifact(RequestError):
    """Something that an earlier stage makes is not there yet."""


class CheckFailed(LexveilError):
    """An expectation did not hold; the stage stops and nothing downstream runs."""
