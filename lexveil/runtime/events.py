"""Events that a process sends to the one that started it: progress, the error it ends with, its result.

They are JSON, one object a line, and travel through a named pipe of their own whose path stands in an environment
variable. Not an inherited descriptor: DVC closes those before it starts a stage. Not a file: a full disk would lose the
error that reports it. A line of up to ``PIPE_BUF`` bytes (4096 on Linux) is written whole or not at all, so a killed
writer leaves no half line behind.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lexveil.errors import LexveilError
from lexveil.runtime.crash import short_report

PIPE = "LEXVEIL_EVENTS"  # environment variable: the path of the pipe
LONGEST_MESSAGE = 2000  # characters of an error; the rest is in the log


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """How far a long loop is.

    Attributes:
        label: of the loop.
        done: units of work, of ``total``; a fraction where a unit takes long.
        unit: in the plural.
        text: the line that people read.
    """

    label: str
    done: float
    total: float
    unit: str
    text: str

    @property
    def percent(self) -> float:
        """From 0 to 100."""
        return min(100.0, 100 * self.done / self.total) if self.total else 100.0


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """Why a process ends with ``exit_code``; ``type`` is the name of the exception."""

    type: str
    message: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class ResultEvent:
    """What a process returns: plain values."""

    value: dict[str, object]


Event = ProgressEvent | ErrorEvent | ResultEvent
KINDS: dict[str, type[Event]] = {"progress": ProgressEvent, "error": ErrorEvent, "result": ResultEvent}
NAMES = {kind: name for name, kind in KINDS.items()}


def send(event: Event) -> None:
    """Send an event to the process that asked for them; nothing happens if none did or it is gone."""
    path = os.environ.get(PIPE)
    if not path:
        return
    line = json.dumps({"event": NAMES[type(event)], **asdict(event)}).encode() + b"\n"
    with suppress(OSError):
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # fails at once if nobody reads
        try:
            os.set_blocking(pipe, True)
            while line:
                line = line[os.write(pipe, line) :]
        finally:
            os.close(pipe)


def send_error(error: BaseException, exit_code: int = 1) -> None:
    """Send why this process is about to end; of an error that is not ours only where: its message may be a text."""
    message = " ".join(str(error).split()) if isinstance(error, LexveilError) else short_report(error)
    send(ErrorEvent(type(error).__name__, message[:LONGEST_MESSAGE], exit_code))


class EventPipe:
    """The reading end: a named pipe in ``folder``, which exists, until it is closed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.resolve() / f"events-{uuid.uuid4().hex[:12]}"
        os.mkfifo(self.path, 0o600)
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        # Without a writer of its own the pipe would be at its end, and ready, whenever no other process has it open.
        self._writer = os.open(self.path, os.O_WRONLY)
        self._rest = b""

    def fileno(self) -> int:
        """For selectors: ready when there are events to read."""
        return self._descriptor

    def read(self) -> Iterator[Event]:
        """Yield the events that have come in; lines that are none are skipped."""
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, 65536):
                *lines, self._rest = (self._rest + data).split(b"\n")
                yield from filter(None, map(_parsed, lines))

    def close(self) -> None:
        """Remove the pipe; later events of processes still at work go nowhere."""
        os.close(self._descriptor)
        os.close(self._writer)
        self.path.unlink(missing_ok=True)


def _parsed(line: bytes) -> Event | None:
    try:
        fields = json.loads(line)
        return KINDS[fields.pop("event")](**fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
