"""The progress of a cluster with a release, in the driver's log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from lexveil.logs import logger

LOG = logger(__name__)

SECONDS = 5.0  # between two lines


class StatusTracker(Protocol):
    """The part of Spark's ``StatusTracker`` that is asked."""

    def getActiveStageIds(self) -> Sequence[int]:
        """The numbers of the stages that run."""
        ...

    def getStageInfo(self, stageId: int) -> Any:
        """The numbers of tasks of a stage; None of one that has ended."""
        ...


@contextmanager
def tasks_told(label: str, tracker: StatusTracker, every: float = SECONDS) -> Iterator[None]:
    """Say from time to time how many tasks of the stages that run are done, while something else
    waits for them.

    Args:
        label: the label of the pass over the rows.
    """
    has_ended = threading.Event()

    def tell() -> None:
        before = ""
        while not has_ended.wait(every):
            line = _line(label, tracker)
            if line and line != before:
                LOG.info(line)
            before = line

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def _line(label: str, tracker: StatusTracker) -> str:
    """The line of this moment; empty where no stage runs, or nobody can say."""
    try:
        found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # a session that ends must not fail by its progress
        return ""
    stages = [stage for stage in found if stage is not None]
    n_tasks = sum(stage.numTasks for stage in stages)
    n_done = sum(stage.numCompletedTasks for stage in stages)
    return f"{label}: {n_done:,} of {n_tasks:,} tasks" if n_tasks else ""
