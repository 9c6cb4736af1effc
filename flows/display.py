"""Display of a run: a live view in a terminal, plain lines anywhere else."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lexveil.runtime.run_events import RunObserver, StageResult

if TYPE_CHECKING:
    from rich.console import RenderableType


def duration(seconds: float) -> str:
    """Write seconds as people read them: 0.4 s, 12.3 s, 3 min 05 s, 1 h 02 min."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@dataclass
class Plain(RunObserver):
    """One line per stage; with ``verbose`` also the output of stages, each line after its stage's name."""

    verbose: bool = False

    def say(self, text: str) -> None:
        """Print a line."""
        # One write: stages end in several threads, and print() writes the line feed apart.
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def start(self, stage: str) -> None:
        """Show that a stage began."""
        if self.verbose:
            self.say(f"{stage} ... started")

    def output(self, stage: str, line: str) -> None:
        """Show what a stage prints."""
        if self.verbose:
            self.say(f"{stage} | {line}")

    def end(self, result: StageResult) -> None:
        """Show how a stage ended."""
        self.say(f"{result.stage} ... {_outcome(result)}")


def _outcome(result: StageResult) -> str:
    took = f" {duration(result.seconds)}"
    if result.state == "ran":
        return f"done{took}"
    if result.state == "restored":
        return f"restored from DVC's cache{took}"
    if result.state == "failed":
        return f"failed after{took}"  # the reason is printed once, at the end
    if result.state == "not run":
        return f"not run: {result.message}"
    return result.state


@dataclass
class Live(RunObserver):
    """Finished stages scroll by; below them the running ones, each with the last line it printed."""

    verbose: bool = False
    total: int = 0
    ended: int = 0
    cached: int = 0
    running: dict[str, tuple[float, str]] = field(default_factory=dict)  # stage -> (since, last line)

    def __post_init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as View

        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._console = Console(highlight=False)
        self._view = View(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=8,
            transient=True,
            redirect_stderr=False,
        )
        self._view.start()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, style="dim", markup=False)

    def begin(self, total: int) -> None:
        """Remember the number of stages."""
        self.total = total

    def start(self, stage: str) -> None:
        """Show that a stage began."""
        with self._lock:
            self.running[stage] = (time.monotonic(), "")

    def output(self, stage: str, line: str) -> None:
        """Show what a stage prints."""
        with self._lock:
            if stage in self.running:
                self.running[stage] = (self.running[stage][0], line)
        if self.verbose:
            self._console.print(f"{stage} | {line}", style="dim", markup=False)

    def end(self, result: StageResult) -> None:
        """Show how a stage ended."""
        with self._lock:
            self.running.pop(result.stage, None)
            self.ended += 1
            self.cached += result.state == "cached"
        marks = {"ran": ("✓", "green"), "restored": ("✓", "cyan"), "failed": ("✗", "red"), "stopped": ("✗", "red")}
        mark, style = marks.get(result.state, ("·", "dim"))
        if result.state != "cached" or self.verbose:
            self._console.print(f"{mark} {result.stage} ... {_outcome(result)}", style=style, markup=False)

    def close(self) -> None:
        """Leave what is printed so far."""
        if not self._view.is_started:
            return
        self._view.stop()
        if self.cached and not self.verbose:
            self._console.print(f"· {self.cached} stage{'s' * (self.cached != 1)} cached", style="dim", markup=False)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        now = time.monotonic()
        width = shutil.get_terminal_size().columns
        with self._lock:
            running = dict(self.running)
            ended = self.ended
        rows = []
        for stage, (since, line) in running.items():
            row = Text(f"▸ {stage} {duration(now - since)}", style="bold", no_wrap=True, overflow="ellipsis")
            row.append(f"  {line}", style="dim not bold")
            row.truncate(width - 1, overflow="ellipsis")
            rows.append(row)
        what = f"{ended} of {self.total} stages" if self.total else "starting"
        rows.append(Text(f"{what} · {duration(now - self._started)}", style="dim"))
        return Group(*rows)


def watcher(verbose: bool) -> RunObserver:
    """Return the display that fits where standard output goes."""
    return Live(verbose) if sys.stdout.isatty() else Plain(verbose)
