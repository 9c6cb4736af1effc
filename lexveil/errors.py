"""The errors people meet: each says what is wrong, where, and what to do.

``RequestError`` means that the request cannot be served as it stands (exit code 2);
``CheckFailed`` means that a run was made and did not hold (exit code 1).
No message quotes a document: logs reach further than the data does.
"""

import errno
import os

# What the system says of a disk, in errors of Python, DuckDB and DVC alike, and what to do about it.
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


class LexveilError(Exception):
    """Base of every error that is shown as one line, without a traceback."""

    exit_code = 1


class RequestError(LexveilError):
    """The request is wrong: a missing file, a wrong column, a parameter out of range."""

    exit_code = 2


class ParameterError(RequestError):
    """A key of params.yaml, or a parameter of a mechanism, is unknown, mistyped or out of range."""


class MissingArtifact(RequestError):
    """Something that an earlier stage makes is not there yet."""


class CheckFailed(LexveilError):
    """An expectation did not hold; the stage stops and nothing downstream runs."""
