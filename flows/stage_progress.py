"""How far a long stage is, as a progress artifact in Prefect: taken from the lines that the stage prints."""

from __future__ import annotations

import re
import threading
from collections.abc import Coroutine
from contextvars import copy_context
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import PrefectException

EVERY_SECONDS = 2.0  # at most one update in this time
CLOSING_SECONDS = 5.0  # what a stage that has ended waits for a slow server

# What lexveil.runtime.stage.Progress prints: `privatize madlib S3 1.0: 1,200 of 5,000 documents, 20,000 tokens/s, …`
LINE = re.compile(r"(?P<what>.+): (?P<done>[\d,]+) of (?P<total>[\d,]+) \S.*")


def percent(line: str) -> float | None:
    """Return how much of its work a stage has done, 0 to 100, if the line tells; else None."""
    found = LINE.fullmatch(line.strip())
    if found is None:
        return None
    done, total = (int(found[name].replace(",", "")) for name in ("done", "total"))
    return min(100.0, 100 * done / total) if total else 100.0


def artifact_key(stage: str) -> str:
    """Return the key of a stage's artifact: lower case letters, digits and dashes are all that Prefect takes."""
    return re.sub(r"[^a-z0-9]+", "-", f"progress-{stage.lower()}").strip("-")


class ProgressPage:
    """The artifact of one running stage; made with its first line about progress, unless that is its last.

    A thread of its own speaks to the server, so that a slow or dead one never holds up the reading of output.
    """

    def __init__(self, stage: str, every: float = EVERY_SECONDS) -> None:
        self._stage, self._every = stage, every
        self._latest: tuple[float, str] | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, line: str) -> None:
        """Take in a line of output; most are not about progress."""
        share = percent(line)
        if share is None or (self._thread is None and share >= 100):
            return
        self._latest = (share, line.strip())
        if self._thread is None:
            # The context says to Prefect which task run the artifact belongs to.
            self._thread = threading.Thread(target=copy_context().run, args=(self._send,), daemon=True)
            self._thread.start()

    def close(self) -> None:
        """The stage has ended: the last line is shown."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(CLOSING_SECONDS)

    def _send(self) -> None:
        artifact: UUID | None = None
        sent: tuple[float, str] | None = None
        try:
            while sent is not self._latest or not self._closed.is_set():
                latest = self._latest
                if latest is not None and latest is not sent:
                    share, line = latest
                    if artifact is None:
                        created = create_progress_artifact(share, artifact_key(self._stage), line)
                        assert not isinstance(created, Coroutine)  # one in asynchronous code only
                        artifact = created
                    else:
                        update_progress_artifact(artifact, share, line)
                    sent = latest
                self._closed.wait(self._every)
        except (httpx.HTTPError, PrefectException):
            return  # it is only shown; the log has the same lines
