"""Commands of a flow: followed to their end, or killed when time is up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prefect import State, get_run_logger
from prefect.states import Cancelled, Failed

from flows.prefect_records import FLOW_RUN, note_run
from flows.process import Command
from flows.stage_progress import ProgressPage
from lexveil.runtime.events import ErrorEvent, ProgressEvent, ResultEvent
from lexveil.runtime.project import build_lock, stage_environment


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, and the error and the result that it sent."""

    code: int
    error: ErrorEvent | None
    result: dict[str, Any] | None


def follow(command: Command, name: str, line: Callable[[str, str], None]) -> Ended:
    """Wait for the end of a command; its progress goes to Prefect as an artifact of ``name``.

    Args:
        command: which has just started.
        name: of the work.
        line: is called for each line of output, with "out" or "err".
    """
    error: ErrorEvent | None = None
    result: dict[str, object] | None = None
    page = ProgressPage(name)
    try:
        for message in command.messages():
            if isinstance(message, ProgressEvent):
                page.update(message)
            elif isinstance(message, ErrorEvent):
                error = message
            elif isinstance(message, ResultEvent):
                result = message.value
            else:
                line(*message)
    finally:
        command.signal(signal.SIGKILL)  # only where an exception left the loop
        code = command.wait()
        page.close()
    return Ended(code, error, result)


class TimedCommands:
    """The commands of one flow run, one at a time: the one that runs, and whether time is up."""

    def __init__(self) -> None:
        self.running: Command | None = None
        self.time_is_up = False

    def stop(self) -> None:
        """Kill the command that runs; none starts any more. Commands of flows leave nothing half-done that way."""
        self.time_is_up = True
        if self.running is not None:
            self.running.signal(signal.SIGKILL)

    def run(self, name: str, argv: Sequence[str]) -> Ended | State[Any]:
        """Run a command to its end, its output going to the log; a state if time is up before or meanwhile."""
        logger = get_run_logger()
        if self.time_is_up:
            return Cancelled(name="NotRun", message="the run was stopped")
        self.running = Command(argv, stage_environment())
        try:
            ended = follow(self.running, name, lambda _, line: logger.info(line))
        finally:
            self.running = None
        return Cancelled(name="Stopped", message="the run was stopped") if self.time_is_up else ended


@contextlib.contextmanager
def exclusive(minutes: float | None, stop: Callable[[], None], say: Callable[[str], None]) -> Iterator[None]:
    """Hold the build lock, so that no build changes the artifacts meanwhile, for a flow that ``stop`` ends in time."""
    with build_lock(wait=True, say=say), time_limit(minutes, stop):
        note_run(say)
        yield
        FLOW_RUN.unlink(missing_ok=True)


@contextlib.contextmanager
def time_limit(minutes: float | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop``, in a thread of its own, if the block takes longer; never if ``minutes`` is None."""
    if minutes is None:
        yield
        return
    timer = threading.Timer(minutes * 60, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def timed_out(minutes: float | None) -> State[Any]:
    """Return the state of a run that took longer than it may; it counts as a failure."""
    return Failed(
        name="TimedOut",
        message=f"stopped after {minutes} minutes (params.yaml: operation.timeout_minutes); the next one continues",
    )
