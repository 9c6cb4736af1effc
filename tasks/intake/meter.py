"""How far a long reading is, for people: on stderr, so that what is reported on stdout stays clean."""

from __future__ import annotations

import sys
import time


class Meter:
    """Says every few seconds how many documents and bytes are done; short work says nothing."""

    def __init__(self, what: str, every: float = 5.0) -> None:
        self.what, self.every = what, every
        self.start = self.last = time.monotonic()

    def show(self, documents: int, size: int) -> None:
        """Print a line if the last one is old enough; ``size`` in bytes."""
        if documents % 256:
            return
        now = time.monotonic()
        if now - self.last >= self.every:
            self.last = now
            megabytes = size / 1e6
            line = (
                f"{self.what}: {documents:,} documents, {megabytes:,.0f} MB, {megabytes / (now - self.start):.0f} MB/s"
            )
            print(line, file=sys.stderr, flush=True)
