"""The chain of entries: each holds the hash of the one before it, so that none can be changed or left out unseen."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lexveil.errors import ParameterError

START = "0" * 64  # what stands for the hash before the first entry


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        seq: 1, 2, 3 and so on.
        time: UTC, as the machine's clock had it.
        release: None in the first entry.
        kind: created; opened, reserved, spent, written, committed, aborted, failed.
        payload: canonical JSON.
        previous: hash of the entry before.
        hash: of all that, as stored.
    """

    seq: int
    time: str
    release: str | None
    kind: str
    payload: str
    previous: str
    hash: str

    def right_hash(self) -> str:
        """sha256 of the previous hash, as bytes, and the entry as canonical JSON."""
        content = {
            "seq": self.seq, "time": self.time, "release": self.release, "kind": self.kind, "payload": self.payload
        }  # fmt: skip
        return hashlib.sha256(f"{self.previous}{canonical(content)}".encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys, no white space and ASCII only: the same value, the same bytes.

    Raises:
        ParameterError: if the value is none of JSON's.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"what is said about a release must be JSON: {type(error).__name__}") from None


def append(con: sqlite3.Connection, release: str | None, kind: str, payload: Mapping[str, Any]) -> Entry:
    """Add an entry, in the transaction of the change it describes."""
    last = con.execute("select seq, hash from entries order by seq desc limit 1").fetchone()
    seq, previous = last or (0, START)
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = Entry(seq + 1, time, release, kind, canonical(payload), previous, "")
    entry = Entry(entry.seq, time, release, kind, entry.payload, previous, entry.right_hash())
    con.execute(
        "insert into entries values (?, ?, ?, ?, ?, ?, ?)",
        (entry.seq, entry.time, entry.release, entry.kind, entry.payload, entry.previous, entry.hash),
    )
    return entry
