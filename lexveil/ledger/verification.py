"""Everything in a ledger computed again: chain, digests, balances, states, caps, and records of releases.

Changes nothing, recovers nothing, and needs no salt but for keys in clear: an auditor can run it on a copy.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lexveil.errors import MissingArtifact, RequestError
from lexveil.ledger.amounts import NANO, spend_digest
from lexveil.ledger.chain import START, Entry, canonical
from lexveil.ledger.database import Database, text
from lexveil.ledger.ledger import DATABASE, PATIENCE, SALT
from lexveil.ledger.output_files import absolute
from lexveil.ledger.subjects import Hasher, fingerprint
from lexveil.runtime.hashes import sha256

SHOWN = 20  # problems of one kind; the rest is counted

NEXT = {
    None: ("open",),
    "open": ("reserved", "aborted"),
    # Up to form 1 of the ledger a release was never `spent`, but written or committed as soon as it was reserved.
    "reserved": ("spent", "written", "committed", "aborted"),
    "spent": ("written", "committed", "failed"),
    "written": ("committed",),
}
STATE_AFTER = {
    "opened": "open",
    "reserved": "reserved",
    "spent": "spent",
    "written": "written",
    "committed": "committed",
    "aborted": "aborted",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not hold: where and what, never a key."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """A ledger computed again.

    Attributes:
        problems: what does not hold.
        records: how many privacy records were compared.
        entries, head: of the chain; None, as what follows, where damage ended the verification before.
        subjects: with a balance.
        releases: by state.
    """

    problems: list[Problem]
    records: int
    entries: int | None = None
    head: str | None = None
    subjects: int | None = None
    releases: dict[str, int] | None = None

    @property
    def holds(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def as_json(self) -> dict[str, object]:
        """As JSON has it; without what is not known."""
        values = {"holds": self.holds} | asdict(self)
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a privacy record says of its release, and the record's own hash.

    Attributes:
        head: of the chain when it was paid for; None from schema 4 on, where only the operator's report has it.
    """

    id: str
    head: str | None
    sha256: str


@dataclass(slots=True)
class _Known:
    """A release as the chain tells it."""

    state: str
    reserved: dict[str, Any] | None = None
    reserved_seq: int | None = None
    reserved_hash: str | None = None
    files: list[dict[str, str]] | None = None


class _Problems:
    """Collects problems."""

    def __init__(self) -> None:
        self._listed: list[Problem] = []
        self._counts: dict[str, int] = {}

    def add(self, where: str, what: str, kind: str | None = None) -> None:
        """Add one; of a ``kind`` at most ``SHOWN`` are listed."""
        if kind is not None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            if self._counts[kind] > SHOWN:
                return
        self._listed.append(Problem(where, what))

    def all(self) -> list[Problem]:
        """The problems that are listed, and how many more of a kind there are."""
        more = [
            Problem(kind, f"{count - SHOWN:,} more are not listed")
            for kind, count in self._counts.items()
            if count > SHOWN
        ]
        return self._listed + more


def verify(folder: Path | str, records: Sequence[Path] = (), patience: float = PATIENCE) -> Verification:
    """Compute a ledger again.

    Args:
        records: privacy records whose release must be in the ledger's chain.

    Raises:
        MissingArtifact: if there is no ledger.
        RequestError: if it is no database at all, or a record cannot be read.
    """
    folder = absolute(folder)
    if not (folder / DATABASE).exists():
        raise MissingArtifact(f"{folder} has no ledger ({DATABASE})")
    claims = [(path, _claim(path)) for path in records]
    database = Database(folder / DATABASE, patience, read_only=True)
    problems = _Problems()
    counted: dict[str, Any] = {}
    try:
        with database.snapshot() as con:
            try:
                _integrity(con, problems)
                known, heads, last = _chain(con, problems)
                counted = {"entries": last.seq if last else 0, "head": last.hash if last else START}
                _releases(con, known, problems)
                _spends(con, known, problems)
                _balances(con, problems)
                _caps(con, problems)
                _names(con, folder, problems)
                counted["subjects"] = con.execute("select count(*) from balances").fetchone()[0]
                counted["releases"] = dict(con.execute("select state, count(*) from releases group by state"))
                for path, claim in claims:
                    _record(path, claim, known, heads, problems)
            except sqlite3.Error as error:
                problems.add(DATABASE, f"is damaged ({error.sqlite_errorname})")
            except (TypeError, ValueError, AttributeError, OverflowError):
                # Whoever can write the file can write anything: what is read is not of the form that we write.
                problems.add(DATABASE, "holds what Lexveil does not write")
    finally:
        database.close()
    return Verification(problems.all(), len(claims), **counted)


def as_text(checked: Verification) -> list[str]:
    """The result for people."""
    lines = [f"{problem.where}: {problem.what}" for problem in checked.problems]
    if not checked.holds:
        return [*lines, "the ledger does not hold"]
    states = ", ".join(f"{n:,} {state}" for state, n in sorted((checked.releases or {}).items())) or "no releases"
    records = "1 record is" if checked.records == 1 else f"{checked.records:,} records are"
    return [
        f"{checked.entries:,} entries, {states}, {checked.subjects:,} subjects: everything holds",
        *([f"{records} in its chain"] if checked.records else []),
        f"head: {checked.head}",
    ]


def _integrity(con: sqlite3.Connection, problems: _Problems) -> None:
    for (finding,) in con.execute("pragma integrity_check(20)"):
        if finding != "ok":
            # SQLite names tables and rows, no content.
            problems.add(DATABASE, str(finding), DATABASE)


def _chain(con: sqlite3.Connection, problems: _Problems) -> tuple[dict[str, _Known], set[str], Entry | None]:
    """Replay the entries; what they say of each release, their hashes, and the last one."""
    known: dict[str, _Known] = {}
    heads: set[str] = set()
    last: Entry | None = None
    for row in con.execute("select seq, time, release, kind, payload, previous, hash from entries order by seq"):
        entry = Entry(*row)
        where = f"entry {entry.seq}"
        expected = last.seq + 1 if last else 1
        if entry.seq != expected:
            problems.add(where, f"entry {expected} is missing before it")
        if entry.previous != (last.hash if last else START):
            problems.add(where, "does not follow the entry before it: one of both was changed, or one is missing")
        if entry.right_hash() != entry.hash:
            problems.add(where, "was changed: its hash is another")
        try:
            payload = json.loads(entry.payload)
            if canonical(payload) != entry.payload:
                raise ValueError
        except ValueError:
            problems.add(where, "its payload is not canonical JSON")
            payload = {}
        _replay(con, entry, payload, known, where, problems)
        heads.add(entry.hash)
        last = entry
    if last is None:
        problems.add("entry 1", "the chain is empty")
    return known, heads, last


def _replay(
    con: sqlite3.Connection, entry: Entry, payload: Any, known: dict[str, _Known], where: str, problems: _Problems
) -> None:
    if entry.seq == 1:
        meta = dict(con.execute("select name, value from meta"))
        if "keys_rule" not in payload:  # a ledger without spending takes the present rule later
            meta.pop("keys_rule", None)
        if entry.kind != "created" or payload != {**meta, "schema": payload.get("schema")}:
            problems.add(where, "is not how this ledger was made: keys or salt are others than it says")
        return
    if entry.release is None and entry.kind in ("cap", "accepted"):
        return
    if entry.release is None or entry.kind not in STATE_AFTER or not isinstance(payload, dict):
        problems.add(where, "is of no kind that there is")
        return
    release = known.get(entry.release)
    state = STATE_AFTER[entry.kind]
    if state not in NEXT.get(release.state if release else None, ()):
        before = release.state if release else "unknown"
        problems.add(where, f"release {entry.release} was {before} and cannot become {state}")
    if release is None:
        release = known[entry.release] = _Known(state)
    release.state = state
    if entry.kind == "reserved":
        release.reserved, release.reserved_seq, release.reserved_hash = payload, entry.seq, entry.hash
    elif entry.kind == "written":
        release.files = payload.get("files", [])


def _releases(con: sqlite3.Connection, known: dict[str, _Known], problems: _Problems) -> None:
    """The table of releases says what the chain says."""
    seen = set()
    for name, state, budget, cap, seq in con.execute("select id, state, budget, cap, reserved_seq from releases"):
        seen.add(name)
        release = known.get(name)
        where = f"release {name}"
        if release is None:
            problems.add(where, "no entry opened it")
            continue
        if state != release.state:
            problems.add(where, f"is {state}, and {release.state} in the chain")
        reserved = release.reserved or {}
        if (budget, cap, seq) != (reserved.get("budget"), reserved.get("cap"), release.reserved_seq):
            problems.add(where, f"its budget, cap or entry is not what entry {release.reserved_seq} says")
    for name in known.keys() - seen:
        problems.add(f"release {name}", "is in the chain, and gone from the releases")
    rows = con.execute(
        "select releases.id, files.final, files.sha256 from files "
        "inner join releases on releases.number = files.release where files.final is not null"
    )
    for name, final, digest in rows:
        files = known[name].files if name in known else None
        if {"final": _path(final), "sha256": digest} not in (files or []):
            problems.add(f"release {name}", "a file of it is not what its entry `written` says")


def _path(final: Any) -> str:
    return os.fsdecode(final) if isinstance(final, bytes) else str(final)


def _spends(con: sqlite3.Connection, known: dict[str, _Known], problems: _Problems) -> None:
    """What subjects pay for each release has the digest that the chain has; what was aborted costs nothing."""
    for (number,) in con.execute("select release from spends group by release"):
        if not con.execute("select 1 from releases where number = ?", (number,)).fetchone():
            problems.add(f"spends of release number {number}", "there is no such release")
    for number, name in con.execute("select number, id from releases").fetchall():
        rows = con.execute("select subject, nano from spends where release = ? order by subject", (number,)).fetchall()
        digest, n_rows = spend_digest(rows), len(rows)
        total = sum(nano for _, nano in rows if isinstance(nano, int))
        release = known.get(name)
        if release is None:
            continue
        reserved = release.reserved if release.state not in ("open", "aborted") else None
        if reserved is None:
            if n_rows:
                problems.add(f"release {name}", f"is {release.state}, and {n_rows:,} subjects pay for it")
        elif (n_rows, total, digest) != (
            reserved.get("spends"),
            reserved.get("total"),
            reserved.get("spends_sha256"),
        ):
            problems.add(
                f"entry {release.reserved_seq}",
                f"what subjects pay for release {name} was changed: {n_rows:,} of them pay {total / NANO:g} epsilon, "
                f"and {reserved.get('spends', 0):,} paid {reserved.get('total', 0) / NANO:g}, or others, or otherwise",
            )


def _bytes(subject: Any) -> bytes:
    return subject if isinstance(subject, bytes) else str(subject).encode()


def _balances(con: sqlite3.Connection, problems: _Problems) -> None:
    for subject, nano in con.execute(text("ledger/wrong_balances")):
        what = f"its balance is {abs(nano) / NANO:g} epsilon too {'low' if nano > 0 else 'high'}"
        problems.add(f"subject {_bytes(subject).hex()}", what, "balances")


def _caps(con: sqlite3.Connection, problems: _Problems) -> None:
    for name, cap, subject, nano in con.execute(text("ledger/over_cap")):
        what = f"release {name} brought it to {nano / NANO:g} epsilon, above the cap of {cap / NANO:g} then"
        problems.add(f"subject {_bytes(subject).hex()}", what, "caps")


def _names(con: sqlite3.Connection, folder: Path, problems: _Problems) -> None:
    """Keys in clear, and the keyed hashes of balances, are right. Without the salt that cannot be told."""
    meta = dict(con.execute("select name, value from meta"))
    if meta.get("keys") != "plain" and con.execute("select 1 from names limit 1").fetchone():
        problems.add("names", "a ledger of hashed keys has keys in clear")
    if not (folder / SALT).exists():
        return
    salt = (folder / SALT).read_bytes()
    if fingerprint(salt) != meta.get("salt"):
        problems.add(SALT, "is not the salt of this ledger")
        return
    hasher = Hasher(salt)
    for subject, key in con.execute("select subject, key from names"):
        if hasher.one(str(key)) != subject:
            problems.add(f"subject {_bytes(subject).hex()}", "its key in clear is not its own", "names")
    if con.execute("pragma user_version").fetchone()[0] < 2:  # without keyed hashes
        return
    for subject, nano, mac in con.execute("select subject, nano, mac from balances"):
        if hasher.mac(subject, nano) != mac:
            problems.add(f"subject {_bytes(subject).hex()}", "its balance was edited: its keyed hash is another", "mac")


def _claim(path: Path) -> _Claim:
    try:
        release = json.loads(path.read_text(encoding="utf-8"))["release"]
        return _Claim(str(release["id"]), release.get("head"), sha256(path))
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise RequestError(f"{path}: is not the record of a release with a ledger (release.id)") from None


def _record(path: Path, claim: _Claim, known: dict[str, _Known], heads: Iterable[str], problems: _Problems) -> None:
    where, release = str(path), known.get(claim.id)
    if release is None:
        problems.add(where, "its release is not in the chain: the ledger was truncated or replaced since")
    elif claim.head is not None and claim.head not in heads:
        problems.add(where, "its head is not in the chain: the ledger was truncated or replaced since")
    elif claim.head is not None and release.reserved_hash != claim.head:
        problems.add(where, "its head is of another release than it says")
    elif release.state != "committed":
        problems.add(where, f"its release is {release.state}, not committed: the ledger was truncated since")
    elif release.files is not None and claim.sha256 not in {file.get("sha256") for file in release.files}:
        problems.add(
            where,
            "was changed since, or is of no file that the release published; after a withdrawal give "
            "record.as_released.json, which stands beside it",
        )
