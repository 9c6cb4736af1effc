"""Display of a pipeline run: a live view in a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lexveil.base.runtime.run_events import SKIPPED_LINE, RunObserver, StageResult

if TYPE_CHECKING:
    from rich.progress import TaskID


def duration(seconds: float) -> str:
    """Format a number of seconds: 0.4 s, 12.3 s, 3 min 05 s, 1 h 02 min."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Plain(RunObserver):
    """Display of a run as plain lines: one line per stage that was not up to date, and lines about
    skipped runs of the grid; with ``verbose`` also the output of stages, after the name of the
    stage.
    """

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.n_cached = 0

    def say(self, text: str) -> None:
        """Print a line of text about the run."""
        # One write per line: stages end in several threads, and print() writes the line feed
        # separately.
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def output(self, stage: str, line: str) -> None:
        """Print a line of a stage's output."""
        if self.verbose:
            self.say(f"{stage} | {line}")
        elif line.startswith(SKIPPED_LINE):
            self.say(line)

    def end(self, result: StageResult) -> None:
        """Update the display after a stage has ended."""
        self.n_cached += result.state == "cached"
        if result.state != "cached":
            self.say_end(result)

    def say_end(self, result: StageResult) -> None:
        """Print the result of a stage that has ended."""
        self.say(f"{result.stage} ... {_outcome(result)}")

    def close(self) -> None:
        """Print once, at the end of the run, the number of stages that were up to date."""
        if self.n_cached:
            self.say(f"{self.n_cached} stage{'s are' if self.n_cached > 1 else ' is'} up to date")
            self.n_cached = 0


def _outcome(result: StageResult) -> str:
    took = duration(result.seconds)
    outcomes = {
        "ran": f"done {took}",
        "restored": f"restored from DVC's cache {took}",
        "failed": f"failed after {took}",  # the reason is printed once, at the end of the run
        "not run": f"not run: {result.message}",
    }
    return outcomes.get(result.state, result.state)


MARKS = {
    "ran": ("✓", "green"),
    "restored": ("✓", "cyan"),
    "failed": ("✗", "red"),
    "stopped": ("✗", "red"),
}


class Live(Plain):
    """Live display of a run for a terminal: finished stages scroll up; the running stages stand
    below them, each with its last line of output.
    """

    def __init__(self, verbose: bool) -> None:
        super().__init__(verbose)
        from rich.console import Console
        from rich.progress import Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        self.n_stages = self.n_ended = 0
        self.running: dict[str, TaskID] = {}
        line = Column(no_wrap=True, overflow="ellipsis")
        self.progress = Progress(
            TextColumn("▸ {task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[line]}", "dim", markup=False, table_column=line),
            console=Console(highlight=False),
            transient=True,
            redirect_stderr=False,
        )
        self.whole = self.progress.add_task("starting", line="")
        self.progress.start()

    def say(self, text: str, style: str = "dim") -> None:
        """Print a line of text about the run, above the live view."""
        self.progress.console.print(text, style=style, markup=False)

    def begin(self, total: int) -> None:
        """Show the total number of stages."""
        self.n_stages = total

    def start(self, stage: str) -> None:
        """Show a stage as running."""
        self.running[stage] = self.progress.add_task(stage, line="")

    def output(self, stage: str, line: str) -> None:
        """Show a line of a stage's output."""
        self.progress.update(self.running[stage], line=line)
        super().output(stage, line)

    def end(self, result: StageResult) -> None:
        """Update the display after a stage has ended."""
        if result.stage in self.running:
            self.progress.remove_task(self.running.pop(result.stage))
        self.n_ended += 1
        self.progress.update(self.whole, description=f"{self.n_ended} of {self.n_stages} stages")
        super().end(result)

    def say_end(self, result: StageResult) -> None:
        """Print the result of a stage that has ended."""
        mark, style = MARKS.get(result.state, ("·", "dim"))
        self.say(f"{mark} {result.stage} ... {_outcome(result)}", style)

    def close(self) -> None:
        """Stop the live view; printed lines stay on the screen."""
        self.progress.stop()
        super().close()


def watcher(verbose: bool) -> RunObserver:
    """Return the live display if the output is a terminal, and the plain display otherwise."""
    return Live(verbose) if sys.stdout.isatty() else Plain(verbose)
