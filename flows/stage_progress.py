"""How far a long stage is, as a progress artifact in Prefect, from the events that the stage sends."""

from __future__ import annotations

import re
import threading
from collections.abc import Coroutine
from contextvars import copy_context
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import PrefectException

from lexveil.runtime.events import ProgressEvent

EVERY_SECONDS = 2.0  # at most one update in this time
CLOSING_SECONDS = 5.0  # that a stage which has ended waits for a slow server


def artifact_key(stage: str) -> str:
    """Return the key of a stage's artifact: Prefect takes lower case letters, digits and dashes only."""
    return re.sub(r"[^a-z0-9]+", "-", f"progress-{stage.lower()}").strip("-")


class ProgressPage:
    """The artifact of one running stage; made with its first progress event, unless that reports the end.

    A thread of its own speaks to the server, so that a slow or dead one never delays the reading of output.
    """

    def __init__(self, stage: str, every: float = EVERY_SECONDS) -> None:
        self._stage, self._every = stage, every
        self._latest: ProgressEvent | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def update(self, event: ProgressEvent) -> None:
        """Show this event as soon as the server takes it."""
        if self._thread is None and event.percent >= 100:
            return
        self._latest = event
        if self._thread is None:
            # The context tells Prefect which task run the artifact belongs to.
            self._thread = threading.Thread(target=copy_context().run, args=(self._send,), daemon=True)
            self._thread.start()

    def close(self) -> None:
        """The stage has ended: the last event is shown."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(CLOSING_SECONDS)

    def _send(self) -> None:
        artifact: UUID | None = None
        sent: ProgressEvent | None = None
        try:
            while sent is not self._latest or not self._closed.is_set():
                latest = self._latest
                if latest is not None and latest is not sent:
                    if artifact is None:
                        created = create_progress_artifact(latest.percent, artifact_key(self._stage), latest.text)
                        assert not isinstance(created, Coroutine)  # one in asynchronous code only
                        artifact = created
                    else:
                        update_progress_artifact(artifact, latest.percent, latest.text)
                    sent = latest
                self._closed.wait(self._every)
        except (httpx.HTTPError, PrefectException):
            return  # it is only shown; the log has the same lines
