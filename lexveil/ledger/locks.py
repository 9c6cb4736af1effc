"""Locks that end with their process, whatever ends it."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from lexveil.errors import RequestError


@dataclass(slots=True)
class Lock:
    """A lock that is held."""

    path: Path
    descriptor: int

    def release(self, remove: bool) -> None:
        """Give it back; without ``remove`` its file says that there is something to recover."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def take(path: Path, wait: bool = False) -> Lock | None:
    """Take a lock, None if another holds it.

    Raises:
        RequestError: if its file cannot be made.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RequestError(
                f"{path}: the lock cannot be made ({error.strerror}); the ledger's folder must be writable"
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            raise RequestError(f"{path}: the file system has no locks ({error.strerror}); use a local one") from None
        # Its holder may have removed the file in between: then this is a lock that nobody else sees.
        try:
            if os.fstat(descriptor).st_ino == os.stat(path).st_ino:  # noqa: PTH116
                return Lock(path, descriptor)
        except FileNotFoundError:
            pass
        os.close(descriptor)
