"""Verification of a budget ledger by recomputing everything: the hash chain of log entries,
digests, balances, states, caps, and records of releases.

The verification changes nothing and recovers nothing, and needs the salt only for plain keys and
keyed hashes. An auditor can run it on a copy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lexveil.base.errors import MissingArtifactError, RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.release.ledger import anchor
from lexveil.release.ledger.checks import Fault, checks
from lexveil.release.ledger.ledger import PATIENCE
from lexveil.release.ledger.output_files import absolute
from lexveil.release.ledger.stores import store_of

SHOWN = 20  # largest number of problems listed per check; further problems are only counted


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of the verification of a ledger.

    Attributes:
        problems: the faults.
        records: number of privacy records that were compared.
        since: the number of entries up to the anchor, which were trusted and not verified; None if
            the whole chain was verified.
        entries, head: number of log entries, and hash of the last entry. These and the following
            attributes are None if damage ended the verification early.
        subjects: number of subjects with a balance. After an anchor, only the subjects that later
            releases have charged are counted.
        releases: number of releases by state. After an anchor, only releases of later log entries
            are counted.
    """

    problems: list[Fault]
    records: int
    since: int | None = None
    entries: int | None = None
    head: str | None = None
    subjects: int | None = None
    releases: dict[str, int] | None = None

    @property
    def holds(self) -> bool:
        """Whether the verification found no fault."""
        return not self.problems

    def as_json(self) -> dict[str, object]:
        """Return the result as JSON values. Unknown values are omitted."""
        values = {"holds": self.holds} | asdict(self)
        return {key: value for key, value in values.items() if value is not None}


def verify(
    folder: Path | str,
    records: Sequence[Path] = (),
    patience: float = PATIENCE,
    address: str | None = None,
    since: Path | None = None,
) -> Verification:
    """Verify a budget ledger by recomputing it.

    Args:
        folder, address: see ``Ledger.open``.
        records: privacy records whose release must be in the ledger's log.
        patience: seconds to wait while other processes use the ledger.
        since: an anchor of this ledger up to which the ledger was verified before. Only later
            entries, their releases, and the balances of the charged subjects are then recomputed.

    Raises:
        MissingArtifactError: if there is no ledger.
        RequestError: if the storage is not a database, a record cannot be read, or the anchor
            belongs to another ledger.
    """
    folder = absolute(folder)
    store = store_of(folder, address)
    if not store.exists():
        raise MissingArtifactError(f"{store.name}: there is no ledger")
    claims = [(path, _release_of(path), sha256(path)) for path in records]
    mark = None if since is None else anchor.read(since)
    if since is not None and mark is None:
        raise RequestError(
            f"{since}: there is no such anchor; give a copy of the ledger's anchor from a "
            "time when the ledger was verified"
        )
    database = store.open(patience, read_only=True)
    place = store.name.rpartition("/")[2]
    problems: list[Fault] = []
    counted: dict[str, Any] = {}
    try:
        with database.snapshot():
            try:
                if mark is not None and [(mark.salt,)] != database.rows(
                    "select value from meta where name = 'salt'"
                ):
                    raise RequestError(
                        f"{since}: the file is the anchor of another ledger than {store.name}"
                    )
                for check in checks(database, folder, claims, counted, mark):
                    problems += islice(check, SHOWN)
                    if n_more := sum(1 for _ in check):
                        problems.append(
                            Fault(
                                problems[-1].where,
                                f"{n_more:,} further problems of this kind are not listed",
                            )
                        )
            except database.failure as error:
                problems.append(Fault(place, database.reason(error)))
            except (TypeError, ValueError, AttributeError, OverflowError):
                # An attacker who can write the file can write any value, also values that Lexveil
                # never writes.
                problems.append(Fault(place, "has a value that Lexveil does not write"))
    finally:
        database.close()
    return Verification(problems, len(claims), None if mark is None else mark.entries, **counted)


def as_text(checked: Verification) -> list[str]:
    """Return the result of a verification as lines of text."""
    lines = [f"{problem.where}: {problem.what}" for problem in checked.problems]
    trusted = []
    if checked.since is not None:
        trusted = [
            f"trusted, not verified: the {checked.since:,} entries up to the anchor, and "
            "the subjects that were not charged since"
        ]
    if not checked.holds:
        return [*lines, "the verification of the ledger failed", *trusted]
    states = (
        ", ".join(f"{n:,} {state}" for state, n in sorted((checked.releases or {}).items()))
        or "no releases"
    )
    records = "1 record is" if checked.records == 1 else f"{checked.records:,} records are"
    n_new = (checked.entries or 0) - (checked.since or 0)
    return [
        f"{n_new:,} entries, {states}, {checked.subjects:,} subjects: no problem was found",
        *trusted,
        *([f"{records} in its chain"] if checked.records else []),
        f"head: {checked.head}",
    ]


def _release_of(path: Path) -> str:
    """Return the id of the release that a privacy record states."""
    try:
        name = str(json.loads(path.read_text(encoding="utf-8"))["release"]["id"])
        name.encode()  # the database would report invalid Unicode as damage of the ledger
        return name
    except OSError as error:
        raise RequestError(f"{path}: the record cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError, KeyError, TypeError):
        raise RequestError(
            f"{path}: the file is not the record of a release with a ledger (release.id)"
        ) from None
