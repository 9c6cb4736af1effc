"""Crash reports that contain the place of an exception and never its message, because the message
may quote a private text.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

from lexveil.base.errors import ADVICE, LexveilError

# environment variable: 1 shows exceptions with their messages, which may quote texts
SHOWN = "LEXVEIL_SHOW_CRASHES"
HIDDEN = f"its message may quote a text and is not shown; {SHOWN}=1 shows it"


def place_of(error: BaseException) -> str:
    """Return the file and line of the code that raised an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
        if frames
        else "an unknown place"
    )


def short_report(error: BaseException) -> str:
    """Return a one-line report of an exception that may be logged: its place in the code, and the
    system message if the error is a known disk error.
    """
    known = [os.strerror(number) for number in ADVICE]
    return "; ".join([place_of(error), *(advice for advice in known if advice in str(error))])


def crash_report(error: BaseException | None) -> str:
    """Return a traceback from which messages, notes and values are removed. The traceback of the
    exception's cause comes first.
    """
    parts: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        said = (
            f": {error}"
            if isinstance(error, LexveilError)
            else f" in {short_report(error)} ({HIDDEN})"
        )
        frames = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"Traceback (most recent call last):\n{frames}{type(error).__name__}{said}\n")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nThat led to:\n\n".join(reversed(parts))


def hide_messages() -> None:
    """Report uncaught exceptions of this process by ``crash_report``, unless the environment
    variable ``SHOWN`` is 1.
    """
    if not os.environ.get(SHOWN):
        sys.excepthook = _hook
        sys.unraisablehook = lambda failed: _hook(
            failed.exc_type, failed.exc_value, failed.exc_traceback
        )
        threading.excepthook = lambda failed: _hook(
            failed.exc_type, failed.exc_value, failed.exc_traceback
        )
        # A failing log handler (for example with a closed stream) would print the exception being
        # handled, with its message.
        logging.raiseExceptions = False


def _hook(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error or kind(), trace)
    elif not issubclass(kind, SystemExit):
        sys.stderr.write(crash_report(error))
