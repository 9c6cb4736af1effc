"""How often each client may ask: a bucket of tokens each, which all workers draw from together."""

from __future__ import annotations

import fcntl
import hashlib
import math
import mmap
import os
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CLIENTS = 4096  # buckets of the file; later clients share the last one
BUCKET = struct.Struct("=16sdd")  # the client's digest, tokens left, seconds of the clock when they were counted
EMPTY = bytes(16)


class Rates:
    """Buckets that hold a minute's requests and fill up evenly.

    They lie in a file that all workers map, under a lock that ends with its process: who is killed holds none.

    Args:
        per_minute: requests of one client.
        path: of the file, which ``make`` made; None counts in this process alone.
        clock: seconds, the same in all processes.
    """

    def __init__(self, per_minute: int, path: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute, self._clock = per_minute, clock
        with tempfile.TemporaryFile() if path is None else path.open("r+b") as file:
            if path is None:
                os.ftruncate(file.fileno(), CLIENTS * BUCKET.size)
            self._lock = os.dup(file.fileno())
            self._buckets = mmap.mmap(file.fileno(), CLIENTS * BUCKET.size)

    @staticmethod
    def make(path: Path) -> None:
        """Make the file."""
        path.write_bytes(bytes(CLIENTS * BUCKET.size))

    def take(self, client: str) -> float:
        """Take a request of a client: 0, or the seconds after which there is one to take."""
        digest = hashlib.blake2b(client.encode(), digest_size=16).digest()
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            place = self._place(digest)
            held, tokens, then = BUCKET.unpack_from(self._buckets, place)
            now, full = self._clock(), float(self.per_minute)
            # What a killed writer left half written is no number of tokens: begin anew.
            if held == EMPTY or not 0 <= tokens <= full or not then <= now:
                tokens, then = full, now
            tokens = min(full, tokens + (now - then) * full / 60)
            taken = tokens >= 1
            BUCKET.pack_into(self._buckets, place, digest, tokens - taken, now)
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        return 0.0 if taken else math.ceil((1 - tokens) * 60 / full)

    def _place(self, digest: bytes) -> int:
        for number in range(CLIENTS):
            place = number * BUCKET.size
            if self._buckets[place : place + 16] in (digest, EMPTY):
                return place
        return (CLIENTS - 1) * BUCKET.size

    def close(self) -> None:
        """Let go of the file."""
        self._buckets.close()
        os.close(self._lock)
