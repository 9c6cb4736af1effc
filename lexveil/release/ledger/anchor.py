"""The anchor of a budget ledger: a file outside the ledger's folder that records the ledger's last
log entry, so that nobody can restart or roll back the ledger unnoticed.

The anchor holds the number of log entries, the hash of the last entry and the fingerprint of the
salt. Every change of the ledger checks the anchor first, in constant time, and updates it
afterwards. If the ledger has more entries than its anchor, a crash occurred between the change and
the update. If the ledger has fewer or other entries, it lacks spending.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.release.ledger import chain
from lexveil.release.ledger.locks import sync, take

LOG = logger(__name__)

if TYPE_CHECKING:
    from lexveil.release.ledger.connection import Connection

LOCK = "anchor"  # name of the anchor's lock, in the folder of the ledger's locks
ACCEPT = (
    "to continue with the current ledger nevertheless, run `lexveil ledger accept --because "
    "TEXT`, which is recorded"
)
RESTORE = f"restore the ledger's last copy, or, {ACCEPT}"


class Mark(BaseModel):
    """Content of an anchor file: number of entries in the ledger's log, hash of the last entry, and
    fingerprint of the ledger's salt.
    """

    entries: int = Field(gt=0, lt=2**63)
    head: str
    salt: str


@dataclass(slots=True)
class Anchor:
    """The anchor of one budget ledger: a file outside the ledger that records the ledger's last log
    entry.

    Attributes:
        path: file of the anchor.
        folder: folder of the ledger.
        salt: fingerprint of the ledger's salt.
        is_behind: whether the file could not be updated after the last log entry.
    """

    path: Path
    folder: Path
    salt: str
    is_behind: bool = False

    def mark(self) -> Mark | None:
        """Return the current content of the anchor file; see ``read``."""
        return read(self.path)

    def check(self, con: Connection, mark: Mark | None) -> None:
        """Check that the ledger is the one that wrote the anchor, in the same state or a later one.
        The check reads at most four rows.

        Args:
            mark: the content of the anchor, read before the state of the ledger was read, or while
                no other process could change the ledger.

        Raises:
            RequestError: if the ledger does not match the anchor, or if there is no anchor although
                a release was charged.
        """
        if self.is_behind:
            raise RequestError(
                f"{self.path}: the ledger's anchor cannot be written, and nothing is spent "
                "without it; check its permissions"
            )
        last, before = [*chain.entries(con, "order by seq desc limit 2"), None, None][:2]
        if (
            last is None
            or last.right_hash() != last.hash
            or (before is not None and last.previous != before.hash)
        ):
            raise RequestError(
                f"{self.folder}: the end of the ledger's chain was changed; {RESTORE}"
            )
        if mark is None:
            if last.seq == 1:
                return  # nothing was ever released
            raise RequestError(
                f"{self.path}: the anchor of the ledger {self.folder} (lexveil.toml: "
                f"ledger.anchor) is missing; restore it from git or your copy, or, {ACCEPT}"
            )
        if mark.salt != self.salt:
            raise RequestError(
                f"{self.path}: the file is the anchor of another ledger than {self.folder}; "
                f"{RESTORE}"
            )
        anchored = con.execute("select hash from entries where seq = ?", (mark.entries,)).fetchone()
        if last.seq < mark.entries or anchored is None or anchored[0] != mark.head:
            raise RequestError(
                f"{self.folder}: the ledger has {last.seq:,} entries, but its anchor "
                f"{self.path} names a different entry {mark.entries:,}, so the ledger is an "
                f"older copy, was truncated or was replaced, and lacks spending; {RESTORE}"
            )

    def write(self, entries: int, head: str, is_accepted: bool = False) -> None:
        """Record the ledger's last log entry in the anchor file, durably. A file with more entries,
        which another process wrote, is replaced only if ``is_accepted`` is set.
        """
        lock = take(self.folder / "locks" / LOCK, wait=True)
        assert lock is not None
        # If the file is a link to another disk, keep the link and replace its target.
        path = Path(os.path.realpath(self.path))
        partial = path.with_name(f"{path.name}.partial")
        try:
            mark = None if is_accepted else read(self.path)
            if mark is not None and mark.entries >= entries:
                return
            content = Mark(entries=entries, head=head, salt=self.salt).model_dump_json(indent=2)
            partial.unlink(missing_ok=True)
            # The anchor has the permissions of its folder, because the anchor of a project is
            # committed.
            mode = 0o600 | (0o644 & path.parent.stat().st_mode)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{content}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
            sync(path.parent)
            self.is_behind = False
        except OSError as error:
            # The change is in the chain already, so it stays. The next change is refused.
            self.is_behind = True
            LOG.warning(f"{self.path}: the ledger's anchor cannot be written ({error.strerror})")
        finally:
            lock.release(remove=False)


def read(path: Path) -> Mark | None:
    """Read an anchor file. Return its content, or None if there is no file.

    Raises:
        RequestError: if the file is not an anchor, or if it is a link without a target, for example
            because a disk is not mounted.
    """
    try:
        return Mark.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        if path.is_symlink():
            raise RequestError(
                f"{path}: the ledger's anchor is a link whose target does not exist; mount "
                f"its disk, or, {ACCEPT}"
            ) from None
        return None
    except OSError as error:
        raise RequestError(
            f"{path}: the ledger's anchor cannot be read ({error.strerror})"
        ) from None
    except ValidationError:
        raise RequestError(
            f"{path}: the file is not the anchor of a ledger; restore the anchor from git "
            "or your copy"
        ) from None


def check_absent(path: Path, ledger: str) -> None:
    """Check that no anchor file exists for a ledger that does not exist.

    Raises:
        RequestError: if there is an anchor.
    """
    if (mark := read(path)) is not None:
        raise RequestError(
            f"{ledger}: the ledger is missing, although {path} names its entry {mark.entries:,}; "
            f"{RESTORE}"
        )
