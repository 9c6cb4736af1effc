"""Everything in a ledger computed again: chain, digests, balances, states, caps, and records of
releases.

Changes nothing, recovers nothing, and needs no salt but for keys in clear: an auditor can run it on
a copy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lexveil.errors import MissingArtifact, RequestError
from lexveil.ledger import anchor
from lexveil.ledger.checks import Fault, checks
from lexveil.ledger.ledger import PATIENCE
from lexveil.ledger.output_files import absolute
from lexveil.ledger.stores import store_of
from lexveil.runtime.hashes import sha256

SHOWN = 20  # problems that one check lists; the rest is counted


@dataclass(frozen=True, slots=True)
class Verification:
    """A ledger computed again.

    Attributes:
        problems: what does not hold.
        records: how many privacy records were compared.
        since: the entry of the anchor, up to which the chain was trusted and not verified; None if
            all was verified.
        entries, head: of the chain; None, as what follows, where damage ended the verification
            before.
        subjects: with a balance; since an anchor, those who pay for the releases below.
        releases: by state; since an anchor, those that an entry after it is about.
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
        """Whether there is no problem."""
        return not self.problems

    def as_json(self) -> dict[str, object]:
        """As JSON has it; without what is not known."""
        values = {"holds": self.holds} | asdict(self)
        return {key: value for key, value in values.items() if value is not None}


def verify(
    folder: Path | str,
    records: Sequence[Path] = (),
    patience: float = PATIENCE,
    address: str | None = None,
    since: Path | None = None,
) -> Verification:
    """Compute a ledger again.

    Args:
        folder, address: as of ``Ledger.open``.
        records: privacy records whose release must be in the ledger's chain.
        since: an anchor of this ledger, up to which it was verified before: what came later is
            computed again, that is entries, releases that they are about, and balances of who pays
            for these.

    Raises:
        MissingArtifact: if there is no ledger.
        RequestError: if it is no database at all, a record cannot be read, or the anchor is none of
            this ledger.
    """
    folder = absolute(folder)
    store = store_of(folder, address)
    if not store.exists():
        raise MissingArtifact(f"{store.name}: there is no ledger")
    claims = [(path, _release_of(path), sha256(path)) for path in records]
    mark = None if since is None else anchor.read(since)
    if since is not None and mark is None:
        raise RequestError(
            f"{since}: there is no such anchor; give a copy of the ledger's anchor from when "
            "all held"
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
                        f"{since}: is the anchor of another ledger than {store.name}"
                    )
                for check in checks(database, folder, claims, counted, mark):
                    problems += islice(check, SHOWN)
                    if n_more := sum(1 for _ in check):
                        problems.append(
                            Fault(problems[-1].where, f"{n_more:,} more like this are not listed")
                        )
            except database.failure as error:
                problems.append(Fault(place, database.reason(error)))
            except (TypeError, ValueError, AttributeError, OverflowError):
                # Whoever can write the file can write anything: what is read is not of the form
                # that we write.
                problems.append(Fault(place, "holds what Lexveil does not write"))
    finally:
        database.close()
    return Verification(problems, len(claims), None if mark is None else mark.entries, **counted)


def as_text(checked: Verification) -> list[str]:
    """The result for people."""
    lines = [f"{problem.where}: {problem.what}" for problem in checked.problems]
    trusted = []
    if checked.since is not None:
        trusted = [
            f"trusted, not verified: the {checked.since:,} entries up to the anchor, and who "
            "paid nothing since"
        ]
    if not checked.holds:
        return [*lines, "the ledger does not hold", *trusted]
    states = (
        ", ".join(f"{n:,} {state}" for state, n in sorted((checked.releases or {}).items()))
        or "no releases"
    )
    records = "1 record is" if checked.records == 1 else f"{checked.records:,} records are"
    n_new = (checked.entries or 0) - (checked.since or 0)
    return [
        f"{n_new:,} entries, {states}, {checked.subjects:,} subjects: everything holds",
        *trusted,
        *([f"{records} in its chain"] if checked.records else []),
        f"head: {checked.head}",
    ]


def _release_of(path: Path) -> str:
    """The release that a privacy record names."""
    try:
        name = str(json.loads(path.read_text(encoding="utf-8"))["release"]["id"])
        name.encode()  # else the database would refuse it, as if the ledger were damaged
        return name
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError, KeyError, TypeError):
        raise RequestError(
            f"{path}: is not the record of a release with a ledger (release.id)"
        ) from None
