"""Everything in a ledger computed again: chain, digests, balances, states, caps, and records of releases.

Changes nothing, recovers nothing, and needs no salt but for keys in clear: an auditor can run it on a copy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from lexveil.errors import MissingArtifact, RequestError
from lexveil.ledger.amounts import NANO
from lexveil.ledger.balances import edited_macs, spend_digest
from lexveil.ledger.chain import START, Entry, canonical
from lexveil.ledger.connection import Connection
from lexveil.ledger.database import Database, text
from lexveil.ledger.ledger import PATIENCE, SALT
from lexveil.ledger.output_files import absolute
from lexveil.ledger.stores import store_of
from lexveil.ledger.subjects import Hasher, fingerprint
from lexveil.runtime.hashes import sha256

SHOWN = 20  # problems that one check lists; the rest is counted

# What a release can become, by its state.
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

    problems: list[Fault]
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


@dataclass(slots=True)
class _Release:
    """A release as the chain tells it.

    Attributes:
        reserved, reserved_seq: payload and number of the entry that reserved it.
        files: of its entry `written`; None before.
    """

    state: str | None = None
    reserved: dict[str, Any] = field(default_factory=dict)
    reserved_seq: int | None = None
    files: list[dict[str, str]] | None = None


def verify(
    folder: Path | str, records: Sequence[Path] = (), patience: float = PATIENCE, address: str | None = None
) -> Verification:
    """Compute a ledger again.

    Args:
        folder, address: as of ``Ledger.open``.
        records: privacy records whose release must be in the ledger's chain.

    Raises:
        MissingArtifact: if there is no ledger.
        RequestError: if it is no database at all, or a record cannot be read.
    """
    folder = absolute(folder)
    store = store_of(folder, address)
    if not store.exists():
        raise MissingArtifact(f"{store.name}: there is no ledger")
    claims = [(path, _release_of(path), sha256(path)) for path in records]
    database = store.open(patience, read_only=True)
    place = store.name.rpartition("/")[2]
    problems: list[Fault] = []
    counted: dict[str, Any] = {}
    try:
        with database.snapshot():
            try:
                for check in _checks(database, folder, claims, counted):
                    problems += islice(check, SHOWN)
                    if n_more := sum(1 for _ in check):
                        problems.append(Fault(problems[-1].where, f"{n_more:,} more like this are not listed"))
            except database.failure as error:
                problems.append(Fault(place, database.reason(error)))
            except (TypeError, ValueError, AttributeError, OverflowError):
                # Whoever can write the file can write anything: what is read is not of the form that we write.
                problems.append(Fault(place, "holds what Lexveil does not write"))
    finally:
        database.close()
    return Verification(problems, len(claims), **counted)


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


def _checks(
    database: Database, folder: Path, claims: Sequence[tuple[Path, str, str]], counted: dict[str, Any]
) -> Iterator[Iterator[Fault]]:
    """Each check in turn; what is counted on the way goes to ``counted``."""
    known: dict[str, _Release] = {}
    con, place = database.con, database.name.rpartition("/")[2]
    yield (Fault(place, what) for what in database.damage())
    yield _chain(con, known, counted)
    yield _releases(con, known)
    yield _files(con, known)
    yield _spends(con, known)
    yield _subjects(con, text("ledger/wrong_balances"), "its balance and what it paid differ by {0:g} epsilon")
    yield _subjects(con, text("ledger/over_cap"), "a release brought it to {0:g} epsilon, above the cap of {1:g} then")
    yield _salted(con, folder)
    counted["subjects"] = con.execute("select count(*) from balances").fetchone()[0]
    counted["releases"] = dict(con.execute("select state, count(*) from releases group by state"))
    yield (Fault(str(path), what) for path, name, digest in claims if (what := _record(known.get(name), digest)))


def _chain(con: Connection, known: dict[str, _Release], counted: dict[str, Any]) -> Iterator[Fault]:
    """Replay the entries: what they say of each release goes to ``known``."""
    seq, head = 0, START
    for entry in map(Entry._make, con.stream(f"select {', '.join(Entry._fields)} from entries order by seq")):
        where = f"entry {entry.seq}"
        if entry.seq != seq + 1:
            yield Fault(where, f"entry {seq + 1} is missing before it")
        if entry.previous != head:
            yield Fault(where, "does not follow the entry before it: one of both was changed, or one is missing")
        if entry.right_hash() != entry.hash:
            yield Fault(where, "was changed: its hash is another")
        try:
            payload = json.loads(entry.payload)
            if canonical(payload) != entry.payload:
                raise ValueError
        except ValueError:
            yield Fault(where, "its payload is not canonical JSON")
            payload = {}
        if what := _replay(con, entry, payload, known):
            yield Fault(where, what)
        seq, head = entry.seq, entry.hash
    if not seq:
        yield Fault("entry 1", "the chain is empty")
    counted |= {"entries": seq, "head": head}


def _replay(con: Connection, entry: Entry, payload: Any, known: dict[str, _Release]) -> str | None:
    """Take an entry over into what is known; what is wrong about it, None if nothing is."""
    if entry.seq == 1:
        meta = dict(con.execute("select name, value from meta"))
        if entry.kind != "created" or payload != {**meta, "schema": payload.get("schema")}:
            return "is not how this ledger was made: keys or salt are others than it says"
        return None
    if entry.release is None and entry.kind in ("cap", "accepted"):
        return None
    if entry.release is None or entry.kind not in KINDS or not isinstance(payload, dict):
        return "is of no kind that there is"
    release = known.setdefault(entry.release, _Release())
    before, release.state = release.state, "open" if entry.kind == "opened" else entry.kind
    if entry.kind == "reserved":
        release.reserved, release.reserved_seq = payload, entry.seq
    elif entry.kind == "written":
        release.files = payload.get("files", [])
    if release.state not in NEXT.get(before, ()):
        return f"release {entry.release} was {before or 'unknown'} and cannot become {release.state}"
    return None


def _releases(con: Connection, known: dict[str, _Release]) -> Iterator[Fault]:
    """The table of releases says what the chain says."""
    rows = con.execute("select id, state, budget, cap, reserved_seq from releases").fetchall()
    for name, state, budget, cap, seq in rows:
        release = known.get(name)
        if release is None:
            yield Fault(f"release {name}", "no entry opened it")
        elif state != release.state:
            yield Fault(f"release {name}", f"is {state}, and {release.state} in the chain")
        elif (budget, cap, seq) != (release.reserved.get("budget"), release.reserved.get("cap"), release.reserved_seq):
            yield Fault(f"release {name}", f"its budget, cap or entry is not what entry {release.reserved_seq} says")
    for name in known.keys() - {row[0] for row in rows}:
        yield Fault(f"release {name}", "is in the chain, and gone from the releases")


def _files(con: Connection, known: dict[str, _Release]) -> Iterator[Fault]:
    """The files of a release are those that its entry `written` names."""
    rows = con.stream(
        "select releases.id, files.final, files.sha256 from files "
        "inner join releases on releases.number = files.release where files.final is not null"
    )
    for name, final, digest in rows:
        file = {"final": os.fsdecode(final) if isinstance(final, bytes) else str(final), "sha256": digest}
        if file not in (known.get(name, _Release()).files or []):
            yield Fault(f"release {name}", "a file of it is not what its entry `written` says")


def _spends(con: Connection, known: dict[str, _Release]) -> Iterator[Fault]:
    """What subjects pay for each release has the digest that the chain has; what was aborted costs nothing."""
    numbers = dict(con.execute("select number, id from releases").fetchall())
    for (number,) in con.execute("select release from spends group by release"):
        if number not in numbers:
            yield Fault(f"spends of release number {number}", "there is no such release")
    for number, name in numbers.items():
        release = known.get(name, _Release())
        reserved = {} if release.state in (None, "open", "aborted") else release.reserved
        found = spend_digest(
            con.stream("select subject, nano from spends where release = ? order by subject", (number,))
        )
        expected = reserved.get("spends", 0), reserved.get("total", 0), reserved.get("spends_sha256", NOBODY_PAYS)
        if found != expected:
            n_paying, total, _ = found
            yield Fault(
                f"entry {release.reserved_seq}" if reserved else f"release {name}",
                f"what subjects pay for release {name} was changed: {n_paying:,} of them pay {total / NANO:g} "
                f"epsilon, and {expected[0]:,} paid {expected[1] / NANO:g}, or others, or otherwise",
            )


def _subjects(con: Connection, query: str, what: str) -> Iterator[Fault]:
    """Whom a query finds: subject, and amounts that ``what`` names in epsilon."""
    for subject, *nano in con.stream(query):
        yield _of_subject(subject, what.format(*(amount / NANO for amount in nano)))


def _of_subject(subject: Any, what: str) -> Fault:
    name = subject if isinstance(subject, bytes) else str(subject).encode()
    return Fault(f"subject {name.hex()}", what)


def _salted(con: Connection, folder: Path) -> Iterator[Fault]:
    """Keys in clear, and the keyed hashes of balances, are right. Without the salt that cannot be told."""
    meta = dict(con.execute("select name, value from meta"))
    if meta.get("keys") != "plain" and con.execute("select 1 from names limit 1").fetchone():
        yield Fault("names", "a ledger of hashed keys has keys in clear")
    if not (folder / SALT).exists():
        return
    salt = (folder / SALT).read_bytes()
    if fingerprint(salt) != meta.get("salt"):
        yield Fault(SALT, "is not the salt of this ledger")
        return
    hasher = Hasher(salt)
    con.mac = hasher.mac
    for subject, key in con.stream("select subject, key from names"):
        if subject != hasher.one(str(key)):
            yield _of_subject(subject, "its key in clear is not its own")
    for subject in edited_macs(con):
        yield _of_subject(subject, "its balance was edited: its keyed hash is another")


def _release_of(path: Path) -> str:
    """The release that a privacy record names."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["release"]["id"])
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError, KeyError, TypeError):
        raise RequestError(f"{path}: is not the record of a release with a ledger (release.id)") from None


def _record(release: _Release | None, digest: str) -> str | None:
    """What is wrong with the record of a release, which has this sha256; None if nothing is."""
    if release is None:
        return "its release is not in the chain: the ledger was truncated or replaced since"
    if release.state != "committed":
        return f"its release is {release.state}, not committed: the ledger was truncated since"
    if release.files is not None and digest not in {file.get("sha256") for file in release.files}:
        return (
            "was changed since, or is of no file that the release published; after a withdrawal give "
            "record.as_released.json, which stands beside it"
        )
    return None
