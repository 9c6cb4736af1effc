"""Results of the stages of a run, and the interface of its observers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageResult:
    """How one stage ended: ran, restored (DVC knew the result), cached, failed, stopped or "not
    run".
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
        """Take a line about the run as a whole."""

    def begin(self, total: int) -> None:
        """The graph is known: it has ``total`` stages."""

    def start(self, stage: str) -> None:
        """A stage was handed to DVC."""

    def output(self, stage: str, line: str) -> None:
        """A stage printed a line."""

    def end(self, result: StageResult) -> None:
        """A stage ended, or will not run."""

    def close(self) -> None:
        """Stop drawing; lines may still come."""
