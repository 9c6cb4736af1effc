"""File locks (flock), which are released whenever their process ends, and durable writing (fsync)
of files and folders.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from lexveil.base.errors import RequestError

WITHOUT_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


@dataclass(slots=True)
class Lock:
    """A file lock that this process holds."""

    path: Path
    held: BaseFileLock

    def release(self, remove: bool) -> None:
        """Release the lock. Without ``remove`` its file stays, as a sign that there is something to
        recover.
        """
        if remove:
            self.path.unlink(missing_ok=True)
        self.held.release(force=True)


def take(path: Path, wait: bool = False) -> Lock | None:
    """Take a file lock. Return None if another process holds the lock.

    Raises:
        RequestError: if the lock file cannot be created, or the file system has no locks.
    """
    # Without flock, a lock file would outlive its process.
    lock = FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        return None
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:
            raise RequestError(
                f"{path}: the file system has no locks ({error.strerror}); use a folder on "
                "a local file system"
            ) from None
        raise RequestError(
            f"{path}: the lock file cannot be created ({error.strerror}); the ledger's "
            "folder must be writable"
        ) from None
    return Lock(path, lock)


def sync(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
