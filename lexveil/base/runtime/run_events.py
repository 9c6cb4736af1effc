"""Results of pipeline stages, and the base class of observers of a pipeline run."""

from __future__ import annotations

from dataclasses import dataclass

SKIPPED_LINE = (
    "skipped: "  # start of a stage's line about runs that it skips, which is always shown
)


@dataclass(frozen=True, slots=True)
class StageResult:
    """Result of one pipeline stage. ``state`` is ran, restored (DVC took the outputs from its
    cache), cached, failed, stopped or "not run".
    """

    stage: str
    state: str
    seconds: float = 0.0
    message: str = ""
    exit_code: int = 0
    rows: str = ""


class RunObserver:
    """Observer of a pipeline run, whose methods several threads call; the methods of this base
    class do nothing.
    """

    def say(self, text: str) -> None:
        """Receive a message about the run as a whole."""

    def begin(self, total: int) -> None:
        """Receive the total number of stages, once the graph is read."""

    def start(self, stage: str) -> None:
        """Receive the name of a stage that DVC is about to run."""

    def output(self, stage: str, line: str) -> None:
        """Receive a line that a stage printed."""

    def end(self, result: StageResult) -> None:
        """Receive the result of a stage that has ended or will not run."""

    def close(self) -> None:
        """Stop drawing the progress display. Further messages and output lines may still arrive."""
