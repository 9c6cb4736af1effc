"""The edge every stage shares: one clear line for a known error, progress for long work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from lexveil.errors import LexveilError


def stage_main(main: Callable[[], None]) -> None:
    """Run a stage; a known error becomes one line on stderr and its exit code."""
    # Whatever a library sends home by default stays here.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    try:
        main()
    except LexveilError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


class Progress:
    """Say how far a long loop is, at most once in ``every`` seconds, as a plain line (on ``stream``, or stdout)."""

    def __init__(self, what: str, total: int, unit: str, every: float = 5.0, stream: TextIO | None = None) -> None:
        self.what, self.total, self.unit, self.every, self.stream = what, total, unit, every, stream
        self.start = self.last = time.monotonic()
        self.done = 0
        self.work = 0
        self.beside = ""

    def advance(self, done: int, work: int = 0, beside: str = "") -> None:
        """Add ``done`` units, in which ``work`` tokens were handled; ``beside`` is said with them from now on."""
        self.done += done
        self.work += work
        self.beside = beside or self.beside
        now = time.monotonic()
        if now - self.last >= self.every:
            self.last = now
            self._print(now)

    def finish(self) -> None:
        """Print the closing line."""
        self._print(time.monotonic())

    def _print(self, now: float) -> None:
        elapsed = max(now - self.start, 1e-9)
        of = f" of {self.total:,}" if self.total else ""  # else it is not known
        line = f"{self.what}: {self.done:,}{of} {self.unit}"
        if self.beside:
            line += f", {self.beside}"
        if self.work:
            line += f", {self.work / elapsed:,.0f} tokens/s"
        if 0 < self.done < self.total:
            line += f", about {elapsed * (self.total - self.done) / self.done:.0f} s left"
        print(line, file=self.stream, flush=True)
