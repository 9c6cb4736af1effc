"""Log messages for users. Every module logs by ``logging``, under its own name below ``lexveil``.

The command line and the stages of the graph show messages on standard error. In another program,
that program's configuration of ``logging`` applies; without a configuration, Python shows warnings.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Taker = Callable[[logging.LogRecord], object]

# The ``extra`` of a message that depends on settings and files only, not on any text.
PUBLIC = {"is_public": True}

# The function that receives messages instead of the log, in this thread or task only.
_taker: ContextVar[Taker | None] = ContextVar("_taker", default=None)


def logger(name: str) -> logging.Logger:
    """Return the logger of a module. ``messages_to`` can redirect the messages of this logger."""
    made = logging.getLogger(name)
    made.addFilter(_is_logged)
    return made


@contextmanager
def messages_to(taker: Taker) -> Iterator[None]:
    """Pass every message that this thread logs within the block to the function ``taker`` instead
    of the log. Other threads log as before.
    """
    token = _taker.set(taker)
    try:
        yield
    finally:
        _taker.reset(token)


@contextmanager
def quiet() -> Iterator[None]:
    """Discard all log messages within the block."""
    with messages_to(lambda _: None):
        yield


@contextmanager
def messages_on_stderr() -> Iterator[None]:
    """Write the log messages of the whole library to standard error, as plain lines. Call this
    function only in a process that Lexveil started.
    """
    library = logging.getLogger("lexveil")
    handler = _StandardError()
    before = (library.level, library.propagate)
    if not any(isinstance(known, _StandardError) for known in library.handlers):
        library.addHandler(handler)
    library.setLevel(logging.INFO)
    library.propagate = False
    try:
        yield
    finally:
        library.removeHandler(handler)
        library.setLevel(before[0])
        library.propagate = before[1]


def _is_logged(record: logging.LogRecord) -> bool:
    taker = _taker.get()
    if taker is not None:
        taker(record)
    return taker is None


class _StandardError(logging.Handler):
    """Log handler that looks up ``sys.stderr`` at each message, because a test or a progress
    display may replace it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one log record to standard error as a line."""
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except OSError:
            self.handleError(record)
