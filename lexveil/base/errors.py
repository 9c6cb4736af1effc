"""Errors that users see: each says what is wrong, where, and what to do.

``RequestError`` means that the request is wrong and cannot be served (exit code 2);
``CheckFailedError`` means that a run took place and a check failed (exit code 1). No message quotes
a document, because more people can read logs than the data.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

# Advice by system error number. Errors of Python, DuckDB and DVC contain the same system
# messages about disks.
ADVICE = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space within that quota",
    errno.EROFS: "make it writable",
    errno.EACCES: "see who owns the file and who may write to it",
    errno.EIO: "check that disk for errors",
}


def advised(message: str) -> str:
    """Return the message of a disk error with advice appended; return any other message
    unchanged.
    """
    for number, advice in ADVICE.items():
        if os.strerror(number) in message:
            return f"{message}; {advice}, and run again: the run continues after the finished parts"
    return message


# private use area: no font or file uses these
_OPEN = "\ue000"
_CLOSE = "\ue001"


def option(name: str) -> str:
    """Mark the name of a request field in a message, so that each interface can show its own name
    for the field: epsilon in Python, --epsilon on the command line, "epsilon" in JSON.
    """
    return f"{_OPEN}{name}{_CLOSE}"


class LexveilError(Exception):
    """Base class of all errors that are shown as one line, without a traceback.

    ``str()`` of an error names the fields of a request as the Python API does; ``told`` inserts the
    field names of another interface.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Return the message with the field names of the Python API."""
        return self.told(str)

    @property
    def message(self) -> str:
        """The message in which field names are still marked, to be inserted into the message of
        another error.
        """
        return super().__str__()

    def told(self, name: Callable[[str], str]) -> str:
        """Return the message, with each field of a request named as ``name(field)`` returns."""
        return re.sub(f"{_OPEN}(.*?){_CLOSE}", lambda match: name(match[1]), self.message)


class RequestError(LexveilError):
    """Error about a wrong request, for example a missing file, a wrong column, or a parameter out
    of range.
    """

    exit_code = 2


class ParameterError(RequestError):
    """Error about an unknown, mistyped or out-of-range key of params.yaml or lexveil.toml, or
    parameter of a mechanism.
    """


class MissingArtifactError(RequestError):
    """Error about a missing output of an earlier stage."""


class CheckFailedError(LexveilError):
    """Failed check of a stage. The stage stops, and no stage that depends on it runs."""
