"""A driver says how far its cluster is; what it asks may fail, and the release goes on."""

import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from lexveil.distributed.progress import tasks_told


class Stage(NamedTuple):
    """The numbers of a stage, as Spark names them."""

    numTasks: int
    numCompletedTasks: int


class Tracker:
    """Stages as they run, one state after the other; then they have ended."""

    def __init__(self, *states: dict[int, Stage | None] | None) -> None:
        self.states: Iterator[dict[int, Stage | None] | None] = iter(states)
        self.state: dict[int, Stage | None] = {}
        self.has_ended = threading.Event()

    def getActiveStageIds(self) -> list[int]:
        state = next(self.states, {})
        if state is None:
            raise RuntimeError("the session has ended")
        self.state = state
        if not state:
            self.has_ended.set()
        return list(state)

    def getStageInfo(self, stageId: int) -> Stage | None:
        return self.state[stageId]


def test_tasks_are_told_as_they_end(capsys: pytest.CaptureFixture[str]) -> None:
    """The tasks of all running stages are counted; no line is printed twice, and a failed query of
    the tracker prints nothing.
    """
    half = {1: Stage(40, 10), 2: Stage(2, 1)}
    whole = {1: Stage(40, 40), 2: None}
    tracker = Tracker(half, half, None, whole)
    with tasks_told("rewrite", tracker, every=0.001):
        assert tracker.has_ended.wait(60)
    assert capsys.readouterr().err.splitlines() == [
        "rewrite: 11 of 42 tasks",
        "rewrite: 40 of 40 tasks",
    ]


def test_an_error_of_the_pass_is_raised_and_nothing_is_left_running() -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="of the pass"), tasks_told("count", Tracker()):
        raise ValueError("of the pass")
    assert threading.active_count() == before
