"""Results of the stages of a run, and the base class of objects that observe a run."""

from __future__ import annotations

from dataclasses import dataclass

SKIPPED_LINE = (
    "skipped: "  # start of a stage's line about runs that it skips, which is always shown
)


@dataclass(frozen=True, slots=True)
class StageResult:
    """Result of one stage. ``state`` is ran, restored (DVC took the outputs from its cache),
    cached, failed, stopped or "not run".
    """

    stage: str
    state: str
    seconds: float = 0.0
    message: str = ""
    exit_code: int = 0
    rows: str = ""


class RunObserver:
    """Observer of run events, called from several threads; this base class does nothing."""

    def say(self, text: str) -> None:
        """Receive a line about the run as a whole."""

    def begin(self, total: int) -> None:
        """Receive the number of stages, once the graph is read."""

    def start(self, stage: str) -> None:
        """Receive the name of a stage that DVC is about to run."""

    def output(self, stage: str, line: str) -> None:
        """Receive a line that a stage printed."""

    def end(self, result: StageResult) -> None:
        """Receive the result of a stage that has ended or will not run."""

    def close(self) -> None:
        """Stop drawing the progress display. Lines may still arrive afterwards."""
