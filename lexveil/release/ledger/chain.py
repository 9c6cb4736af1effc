"""The ledger's log, a chain of entries. Each entry holds the hash of the previous entry, so that no
entry can be changed or removed unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from lexveil.base.errors import ParameterError

if TYPE_CHECKING:
    from lexveil.release.ledger.connection import Connection

START = "0" * 64  # previous hash of the first entry


class Entry(NamedTuple):
    """One entry of the ledger's hash-chained log.

    Attributes:
        seq: number of the entry: 1, 2, 3 and so on.
        time: UTC time of the machine's clock.
        release: id of the release; None for an entry about the ledger itself.
        kind: created, cap, accepted; opened, reserved, spent, written, committed, aborted, failed.
        payload: canonical JSON.
        previous: hash of the previous entry.
        hash: stored hash of all fields above.
    """

    seq: int
    time: str
    release: str | None
    kind: str
    payload: str
    previous: str
    hash: str

    def right_hash(self) -> str:
        """Return the correct SHA-256 of this entry, computed from the previous entry's hash and
        this entry as canonical JSON.
        """
        content = {
            name: getattr(self, name) for name in ("seq", "time", "release", "kind", "payload")
        }
        return hashlib.sha256(f"{self.previous}{canonical(content)}".encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return a value as JSON with sorted keys, no white space and ASCII only, so that equal values
    have equal bytes.

    Raises:
        ParameterError: if the value cannot be written as JSON.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"facts about a release must be values of JSON: {type(error).__name__}"
        ) from None


def entries(con: Connection, clause: str = "order by seq") -> Iterator[Entry]:
    """Return the log entries that an SQL clause selects, in the order of the clause."""
    columns = ", ".join(Entry._fields)
    return map(Entry._make, con.execute(f"select {columns} from entries {clause}"))


def newest(con: Connection, *kinds: str) -> Entry | None:
    """Return the newest log entry, or the newest entry of the given kinds, or None if there is no
    such entry.
    """
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    return next(
        entries(con, f"{f'where kind in ({listed})' if kinds else ''} order by seq desc limit 1"),
        None,
    )


def append(con: Connection, release: str | None, kind: str, payload: Mapping[str, Any]) -> Entry:
    """Append an entry to the ledger's log, in the transaction of the change that it describes."""
    last = newest(con)
    seq, previous = (last.seq, last.hash) if last else (0, START)
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = Entry(seq + 1, time, release, kind, canonical(payload), previous, "")
    entry = entry._replace(hash=entry.right_hash())
    con.execute("insert into entries values (?, ?, ?, ?, ?, ?, ?)", entry)
    return entry
