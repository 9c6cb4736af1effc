"""Stage entry point: arguments, errors and progress. What a stage that fails prints last says
why.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from lexveil.errors import LexveilError, RequestError
from lexveil.levels import parse_epsilon
from lexveil.runtime.arrow import keep_pandas_out
from lexveil.runtime.crash import hide_messages


def stage_main(main: Callable[[], None], *, pandas: bool = True) -> None:
    """Run a stage; a known error becomes one line on stderr and its exit code.

    Args:
        pandas: whether the stage works with it. Else no library that it uses gets it, which takes
            half a second to import; for a process of its own.
    """
    os.environ.setdefault("DO_NOT_TRACK", "1")  # no telemetry of libraries
    hide_messages()
    try:
        if not pandas:
            keep_pandas_out(of_process=True)
        main()
    except LexveilError as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(error.exit_code)


def named_run(usage: str) -> tuple[str, str, float]:
    """Mechanism, strategy and base epsilon, or level, of a run, as the command line names it.

    Raises:
        RequestError: with ``usage``, if there are other than three words, or the last is no number
            and no level.
    """
    try:
        mechanism, strategy, epsilon = sys.argv[1:]
        return mechanism, strategy, parse_epsilon(epsilon)
    except ValueError:
        raise RequestError(usage) from None


def named_segmentation(stage: str) -> str:
    """The segmentation that the command line of a stage names.

    Raises:
        RequestError: if it does not name one.
    """
    if len(sys.argv) != 2:
        raise RequestError(f"usage: python -m tasks.{stage} word|gst|mst")
    return sys.argv[1]


# is told how many units are done, and of how many, where that is known
Watch = Callable[[int, int | None], object]


class Progress:
    """Reports how far a long loop is, at most once in ``every`` seconds, by a line on ``stream`` or
    stdout.

    What is left is estimated by what was done since the first units were: before them libraries,
    lists and compiled code are loaded, and work that a stopped run had done is there at once.

    Args:
        label: of the loop.
        total: units of work; 0 if not known.
        unit: in the plural.
        every: seconds between two reports.
        stream: where lines go.
        watch: is told each step, in place of lines.
    """

    def __init__(
        self,
        label: str,
        total: int,
        unit: str,
        every: float = 5.0,
        stream: TextIO | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.watch = watch
        self.label, self.total, self.unit, self.every, self.stream = (
            label,
            total,
            unit,
            every,
            stream,
        )
        self.start = self.last = time.monotonic()
        self.done = 0
        self.work = 0
        self.note = ""
        # when the first units were done, and how many these were
        self._begun: tuple[float, int] | None = None

    def advance(self, done: int, work: int = 0, note: str = "") -> None:
        """Add ``done`` units, in which ``work`` tokens were handled; ``note`` stands in the reports
        from now on.
        """
        self.done += done
        self.work += work
        self.note = note or self.note
        if self.watch is not None:
            self.watch(self.done, self.total or None)
            return
        now = time.monotonic()
        is_due = now - self.last >= self.every
        if self._begun is None:
            self._begun = now, self.done
            self.last = now  # so that the next report has seen work of ``every`` seconds
        if is_due:
            self.last = now
            self._report(now)

    def finish(self) -> None:
        """Report the end."""
        self._report(time.monotonic())

    def _report(self, now: float) -> None:
        elapsed = max(now - self.start, 1e-9)
        share = f"{self.done:,} of {self.total:,}" if self.total else f"{self.done:,}"
        line = f"{self.label}: {share} {self.unit}"
        if self.note:
            line += f", {self.note}"
        if self.work:
            line += f", {self.work / elapsed:,.0f} tokens/s"
        begin, n_first = self._begun or (now, self.done)
        if n_first < self.done < self.total:
            left = (now - begin) * (self.total - self.done) / (self.done - n_first)
            line += f", about {left:.0f} s left"
        print(line, file=self.stream, flush=True)
