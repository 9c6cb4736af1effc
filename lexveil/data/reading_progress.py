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


class StreamMeter:
    """Says the same of shards that are read through, and how long the rest will take at the rate so far."""

    def __init__(self, what: str, shards: int, total: int, every: float = 5.0) -> None:
        self.what, self.shards, self.total, self.every = what, shards, total, every
        self.start = self.last = time.monotonic()
        self.shard = self.read = self.kept = self.before = self.size = 0

    def begin(self, size: int) -> None:
        """The next shard, of ``size`` bytes as it lies there."""
        self.shard += 1
        self.size = size

    def show(self, read: int, kept: int, position: int) -> None:
        """Print a line if the last one is old enough; documents read and kept of this shard, and bytes read."""
        if read % 256:
            return
        now = time.monotonic()
        if now - self.last >= self.every:
            self.last = now
            self._print(self.read + read, self.kept + kept, self.before + position, now)

    def end(self, read: int, kept: int) -> None:
        """The shard is finished."""
        self.read += read
        self.kept += kept
        self.before += self.size

    def finish(self) -> None:
        """Print the closing line, where there was anything to read."""
        if self.shard:
            self._print(self.read, self.kept, self.before, time.monotonic())

    def _print(self, read: int, kept: int, done: int, now: float) -> None:
        elapsed = max(now - self.start, 1e-9)
        line = f"{self.what}: shard {self.shard:,} of {self.shards:,}, {read:,} documents, {kept:,} kept, "
        line += f"{done / 1e6:,.0f} of {self.total / 1e6:,.0f} MB, {done / 1e6 / elapsed:.1f} MB/s"
        if 0 < done < self.total:
            minutes = elapsed * (self.total - done) / done / 60
            left = f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min"
            line += f", about {left} left"
        print(line, file=sys.stderr, flush=True)
