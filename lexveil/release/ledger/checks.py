"""Checks that recompute a whole ledger, or the part of it that is newer than an anchor."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from lexveil.release.ledger.amounts import NANO
from lexveil.release.ledger.anchor import Mark
from lexveil.release.ledger.balances import edited_macs, spend_digest
from lexveil.release.ledger.chain import START, Entry, canonical
from lexveil.release.ledger.connection import Connection
from lexveil.release.ledger.database import Database, text
from lexveil.release.ledger.ledger import SALT
from lexveil.release.ledger.subjects import Hasher, fingerprint

ENTRIES = f"select {', '.join(Entry._fields)} from entries"
# The releases to verify: all releases, or the releases of the entries after the anchor.
TOUCHED = (
    "select number from releases where number >= $first or id in (select release from "
    "entries where seq >= $seq)"
)
LEAST_INTEGER = -(2**63)
WRONG = "its balance and its charges differ by {0:g} epsilon"
OVER_CAP = "a release raised its balance to {0:g} epsilon, above the cap of {1:g} at that time"
EDITED = "its balance was edited, because the keyed hash does not match"

# Possible next states of a release, by its state.
NEXT = {
    None: ("open",),
    "open": ("reserved", "aborted"),
    "reserved": ("spent", "aborted"),
    "spent": ("written", "committed", "failed"),
    "written": ("committed",),
}
NOBODY_PAYS = spend_digest(())[2]
KINDS = ("opened", "reserved", "spent", "written", "committed", "aborted", "failed")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was found in the ledger: its place and its description, without any subject's
    key.
    """

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class _Scope:
    """Part of the ledger to verify: the whole ledger, or everything newer than an anchor.

    Attributes:
        trusted, head: number of log entries before this part, and the hash of the last of these.
        seq, first: number of the first entry, and of the first release that began in this part.
    """

    trusted: int = 0
    head: str = START
    seq: int = LEAST_INTEGER
    first: int = LEAST_INTEGER

    @property
    def touched(self) -> dict[str, int]:
        """Parameters for the SQL query ``TOUCHED``, which finds the subjects that the releases in
        this part have charged.
        """
        return {"first": self.first, "seq": self.seq}


@dataclass(slots=True)
class _Release:
    """State of a release, reconstructed from the ledger's log.

    Attributes:
        reserved, reserved_seq: payload and number of the log entry `reserved`.
        files: files in the entry `written`; None before this entry.
    """

    state: str | None = None
    reserved: dict[str, Any] = field(default_factory=dict)
    reserved_seq: int | None = None
    files: list[dict[str, str]] | None = None


def checks(
    database: Database,
    folder: Path,
    claims: Sequence[tuple[Path, str, str]],
    counted: dict[str, Any],
    mark: Mark | None,
) -> Iterator[Iterator[Fault]]:
    """Yield each check of the ledger as an iterator of the faults that it finds, and write totals
    to ``counted``.
    """
    known: dict[str, _Release] = {}
    con = database.con
    place = database.name.rpartition("/")[2]
    scope = _Scope()
    if mark is None:
        yield (Fault(place, what) for what in database.damage())
    elif (new := _new_since(con, mark)) is None:
        yield iter(
            [
                Fault(
                    f"entry {mark.entries}",
                    "differs from the entry that the anchor names, so the ledger was truncated "
                    "or replaced",
                )
            ]
        )
        return
    else:
        scope = new
        which = f"release in (select id from releases where number in ({TOUCHED})) and seq < $seq"
        _replay_all(con, known, which, scope.touched)
    yield _chain(con, known, counted, scope)
    yield _releases(con, known, scope)
    yield _files(con, known, scope)
    yield _spends(con, known, scope)
    hasher = _hasher(con, folder)
    yield _meta(con, folder, hasher)
    if mark is None:
        yield _subjects(con, text("ledger/wrong_balances"), WRONG)
        yield _subjects(con, text("ledger/over_cap"), OVER_CAP)
        if hasher is not None:
            yield _keyed(con, hasher)
        counted["subjects"] = con.execute("select count(*) from balances").fetchone()[0]
    else:
        yield _paying(con, scope, hasher, counted)
    of_state = f"select state, count(*) from releases where number in ({TOUCHED}) group by state"
    counted["releases"] = dict(con.execute(of_state, scope.touched))
    for name in {name for _, name, _ in claims} - known.keys():  # before the anchor
        _replay_all(con, known, "release = $id", {"id": name})
    yield (
        Fault(str(path), what)
        for path, name, digest in claims
        if (what := _record(known.get(name), digest))
    )


def _new_since(con: Connection, mark: Mark) -> _Scope | None:
    """Return the part of the ledger that is newer than an anchor, or None if the ledger's entry
    differs from the entry that the anchor names.
    """
    rows = con.execute(f"{ENTRIES} where seq = ?", (mark.entries,)).fetchall()
    if (
        not rows
        or (entry := Entry._make(rows[0])).hash != mark.head
        or entry.right_hash() != entry.hash
    ):
        return None
    begun = (
        "select release from entries where seq <= ? and kind = 'opened' order by seq desc limit 1"
    )
    last = con.execute(
        f"select number from releases where id = ({begun})", (mark.entries,)
    ).fetchone()
    return _Scope(mark.entries, mark.head, mark.entries + 1, last[0] + 1 if last else LEAST_INTEGER)


def _replay_all(
    con: Connection, known: dict[str, _Release], clause: str, parameters: Mapping[str, Any]
) -> None:
    """Reconstruct the state of releases from log entries into ``known``, without checking the
    entries.
    """
    for entry in map(Entry._make, con.stream(f"{ENTRIES} where {clause} order by seq", parameters)):
        _replay(con, entry, json.loads(entry.payload), known)


def _chain(
    con: Connection, known: dict[str, _Release], counted: dict[str, Any], scope: _Scope
) -> Iterator[Fault]:
    """Check the hash chain of the log entries, and reconstruct the state of releases into
    ``known``.
    """
    seq = scope.trusted
    head = scope.head
    for entry in map(
        Entry._make, con.stream(f"{ENTRIES} where seq >= ? order by seq", (scope.seq,))
    ):
        where = f"entry {entry.seq}"
        if entry.seq != seq + 1:
            yield Fault(where, f"the entry {seq + 1} before it is missing")
        if entry.previous != head:
            yield Fault(
                where,
                "does not follow the previous entry, so one of the two was changed, or an "
                "entry between them is missing",
            )
        if entry.right_hash() != entry.hash:
            yield Fault(where, "was changed, because its hash does not match")
        try:
            payload = json.loads(entry.payload)
            if canonical(payload) != entry.payload:
                raise ValueError
        except ValueError:
            yield Fault(where, "its payload is not canonical JSON")
            payload = {}
        if what := _replay(con, entry, payload, known):
            yield Fault(where, what)
        seq = entry.seq
        head = entry.hash
    if not seq:
        yield Fault("entry 1", "the chain is empty")
    counted |= {"entries": seq, "head": head}


def _replay(con: Connection, entry: Entry, payload: Any, known: dict[str, _Release]) -> str | None:
    """Apply a log entry to the states of releases in ``known``, and return a description of its
    fault, or None if it has none.
    """
    if entry.seq == 1:
        meta = dict(con.execute("select name, value from meta"))
        if entry.kind != "created" or payload != {**meta, "schema": payload.get("schema")}:
            return (
                "does not match the ledger: the ledger has other keys or another salt "
                "than this entry states"
            )
        return None
    if entry.release is None and entry.kind in ("cap", "accepted"):
        return None
    if entry.release is None or entry.kind not in KINDS or not isinstance(payload, dict):
        return "has an unknown kind"
    release = known.setdefault(entry.release, _Release())
    before = release.state
    release.state = "open" if entry.kind == "opened" else entry.kind
    if entry.kind == "reserved":
        release.reserved = payload
        release.reserved_seq = entry.seq
    elif entry.kind == "written":
        release.files = payload.get("files", [])
    if release.state not in NEXT.get(before, ()):
        return (
            f"release {entry.release} was {before or 'unknown'} and cannot become {release.state}"
        )
    return None


def _releases(con: Connection, known: dict[str, _Release], scope: _Scope) -> Iterator[Fault]:
    """Check that the table of releases agrees with the ledger's log."""
    query = f"select id, state, budget, cap, reserved_seq from releases where number in ({TOUCHED})"
    rows = con.execute(query, scope.touched).fetchall()
    for name, state, budget, cap, seq in rows:
        release = known.get(name)
        if release is None:
            yield Fault(f"release {name}", "no entry opened it")
        elif state != release.state:
            yield Fault(
                f"release {name}", f"has the state {state}, but {release.state} in the chain"
            )
        elif (budget, cap, seq) != (
            release.reserved.get("budget"),
            release.reserved.get("cap"),
            release.reserved_seq,
        ):
            yield Fault(
                f"release {name}",
                f"its budget, cap or entry differs from entry {release.reserved_seq}",
            )
    for name in known.keys() - {row[0] for row in rows}:
        yield Fault(f"release {name}", "is in the chain, but not in the table of releases")


def _files(con: Connection, known: dict[str, _Release], scope: _Scope) -> Iterator[Fault]:
    """Check that the stored files of each release are the files in its log entry `written`."""
    rows = con.stream(
        "select releases.id, files.final, files.sha256 from files "
        "inner join releases on releases.number = files.release where final is not null and "
        f"number in ({TOUCHED})",
        scope.touched,
    )
    for name, final, digest in rows:
        file = {
            "final": os.fsdecode(final) if isinstance(final, bytes) else str(final),
            "sha256": digest,
        }
        if file not in (known.get(name, _Release()).files or []):
            yield Fault(f"release {name}", "a file of the release differs from its entry `written`")


def _spends(con: Connection, known: dict[str, _Release], scope: _Scope) -> Iterator[Fault]:
    """Check that the charges of each release have the digest in the ledger's log, and that a
    release without a reservation has no charges.
    """
    query = f"select number, id from releases where number in ({TOUCHED})"
    numbers = dict(con.execute(query, scope.touched).fetchall())
    for (number,) in con.execute(
        "select release from spends where release >= ? group by release", (scope.first,)
    ):
        if number not in numbers:
            yield Fault(f"spends of release number {number}", "there is no such release")
    query = (
        f"select release, subject, nano from spends where release in ({TOUCHED}) order by "
        "release, subject"
    )
    paying = groupby(con.stream(query, scope.touched), itemgetter(0))
    digests = {
        number: spend_digest((subject, nano) for _, subject, nano in rows)
        for number, rows in paying
    }
    for number, name in numbers.items():
        release = known.get(name, _Release())
        reserved = {} if release.state in (None, "open", "aborted") else release.reserved
        found = digests.get(number, (0, 0, NOBODY_PAYS))
        expected = (
            reserved.get("spends", 0),
            reserved.get("total", 0),
            reserved.get("spends_sha256", NOBODY_PAYS),
        )
        if found != expected:
            n_paying, total, _ = found
            yield Fault(
                f"entry {release.reserved_seq}" if reserved else f"release {name}",
                f"the charges of release {name} were changed: {n_paying:,} subjects are "
                f"charged {total / NANO:g} epsilon, but the chain records other charges "
                f"({expected[0]:,} subjects, {expected[1] / NANO:g} epsilon)",
            )


def _subjects(con: Connection, query: str, what: str) -> Iterator[Fault]:
    """Run a query that returns a subject and amounts, and yield a fault for each row. ``what`` is a
    template for the amounts in epsilon.
    """
    for subject, *nano in con.stream(query):
        yield _of_subject(subject, what.format(*(amount / NANO for amount in nano)))


def _of_subject(subject: Any, what: str) -> Fault:
    name = subject if isinstance(subject, bytes) else str(subject).encode()
    return Fault(f"subject {name.hex()}", what)


def _paying(
    con: Connection, scope: _Scope, hasher: Hasher | None, counted: dict[str, Any]
) -> Iterator[Fault]:
    """Check the sums, keyed hashes and caps of the balances of all subjects that the checked
    releases charge.
    """
    counted["subjects"] = 0
    query = text("ledger/paying").format(touched=TOUCHED)
    for subject, nano, mac, paid, most, cap in con.stream(query, scope.touched):
        counted["subjects"] += 1
        if nano != paid:
            yield _of_subject(subject, WRONG.format((paid - nano) / NANO))
        elif hasher is not None and mac != hasher.mac(subject, nano):
            yield _of_subject(subject, EDITED)
        if most is not None:
            yield _of_subject(subject, OVER_CAP.format(most / NANO, cap / NANO))


def _hasher(con: Connection, folder: Path) -> Hasher | None:
    """Return the hasher with the ledger's salt, or None if the salt is not in the folder. Keyed
    hashes cannot be checked without the salt.
    """
    salt = (folder / SALT).read_bytes() if (folder / SALT).exists() else b""
    rows = con.execute("select value from meta where name = 'salt'").fetchall()
    return Hasher(salt) if rows == [(fingerprint(salt),)] else None


def _meta(con: Connection, folder: Path, hasher: Hasher | None) -> Iterator[Fault]:
    """Check that the salt belongs to the ledger, and that subjects' keys are stored in plain text
    only if the ledger's settings say so.
    """
    plain = con.execute("select 1 from meta where name = 'keys' and value = 'plain'").fetchone()
    if not plain and con.execute("select 1 from names limit 1").fetchone():
        yield Fault("names", "a ledger of hashed keys has keys in plain text")
    if hasher is None and (folder / SALT).exists():
        yield Fault(SALT, "is not the salt of this ledger")


def _keyed(con: Connection, hasher: Hasher) -> Iterator[Fault]:
    """Check subjects' keys in plain text against their hashes, and check the keyed hashes of all
    balances.
    """
    for subject, key in con.stream("select subject, key from names"):
        if subject != hasher.one(str(key)):
            yield _of_subject(subject, "its key in plain text does not match its hash")
    con.mac = hasher.mac
    for subject in edited_macs(con):
        yield _of_subject(subject, EDITED)


def _record(release: _Release | None, digest: str) -> str | None:
    """Return the fault of the privacy record with this SHA-256, compared with its release in the
    log, or None if it has none.
    """
    if release is None:
        return "its release is not in the chain, so the ledger was truncated or replaced since"
    if release.state != "committed":
        return (
            f"its release has the state {release.state}, not committed, so the ledger "
            "was truncated since"
        )
    if release.files is not None and digest not in {file.get("sha256") for file in release.files}:
        return (
            "the record was changed since, or the release did not publish this file; after "
            "a withdrawal, give record.as_released.json, which is next to it"
        )
    return None
