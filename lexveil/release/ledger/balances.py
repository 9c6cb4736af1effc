"""Balances of subjects: the epsilon that each has spent, with keyed hashes that show whether
anybody edited them.

A balance is the sum of the charges of all releases to a subject. It has a keyed hash (BLAKE2b, with
a key made from the salt) of subject and amount. Sum and hash are checked for every subject of a
release before the release spends. The ledger's hash-chained log records the number of balances, so
that a balance cannot be removed together with its charges.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from lexveil.base.errors import RequestError
from lexveil.release.ledger import chain
from lexveil.release.ledger.anchor import RESTORE
from lexveil.release.ledger.connection import Connection
from lexveil.release.ledger.database import text

CHARGES = (
    "subject blob, balance bigint, mac blob, paid bigint, n_withheld bigint, first_withheld bigint"
)


def edited(wrong: int) -> RequestError:
    """Return the error for a number of balances that somebody edited."""
    return RequestError(
        f"{wrong:,} of the ledger's balances differ from the charges of releases, so "
        f"somebody edited them (`lexveil ledger verify` names them); {RESTORE}"
    )


def spend_digest(rows: Iterable[tuple[Any, Any]]) -> tuple[int, int, str]:
    """Return the number of charged subjects, the total of their charges, and a digest of the
    (subject hash, nano-epsilon) pairs in the order of the hashes. The digest is recorded in the
    ledger's log.
    """
    digest = hashlib.sha256()
    n_paying = 0
    total = 0
    for subject, nano in rows:
        n_paying = n_paying + 1
        total = total + (nano if isinstance(nano, int) else 0)
        # A value that is not a number gets a digest that no amount can have.
        digest.update(subject if isinstance(subject, bytes) else str(subject).encode())
        digest.update(
            nano.to_bytes(8, "big", signed=True) if isinstance(nano, int) else b"not a number"
        )
    return n_paying, total, digest.hexdigest()


def seal(con: Connection, spent: str = "balance", release: int | None = None) -> tuple[int, str]:
    """Verify the balances of the subjects in temp.charges, write their new balances to temp.sealed,
    and write the charges to the table spends.

    This process computes the keyed hashes, not the database, so that their key stays on this
    machine.

    Args:
        spent: SQL expression for the spending of a subject according to its charges, which must
            equal the subject's balance.
        release: number of the charged release; None writes nothing to spends.

    Returns:
        Number of edited balances, and a digest (for the ledger's log) of the amounts that are
            charged or returned.
    """
    digest = hashlib.sha256()
    wrong = 0

    def sealed(
        subject: bytes, balance: int, mac: bytes | None, paid: int, spent: int
    ) -> bytes | None:
        nonlocal wrong
        if balance != spent or (
            (balance != 0 or paid < 0) if mac is None else mac != con.mac(subject, balance)
        ):
            wrong += 1
        elif paid:
            digest.update(subject + abs(paid).to_bytes(8, "big"))
            return con.mac(subject, balance + paid)
        return None

    con.scratch("sealed", "subject blob, nano bigint, mac blob, is_new boolean")
    con.seal(sealed, spent, release)
    con.analyze("sealed")
    return wrong, digest.hexdigest()


def write_sealed(con: Connection) -> None:
    """Copy the new balances from temp.sealed to the table of balances. Balances of new subjects are
    inserted by a separate statement, which halves the time in PostgreSQL.
    """
    for query in ("ledger/raise", "ledger/add"):
        con.execute(text(query))


def give_back(con: Connection, release: int) -> int:
    """Subtract the charges of a release from the balances of its subjects, and delete the charges.

    Returns:
        Number of balances after the change.

    Raises:
        RequestError: if a balance or a charge was edited.
    """
    n_balances = recorded(con)
    reserved = con.execute(
        "select payload from entries inner join releases on releases.reserved_seq = "
        "entries.seq where number = ?",
        (release,),
    ).fetchone()
    con.scratch("charges", CHARGES)
    con.execute(
        "insert into charges (subject, balance, mac, paid) " + text("ledger/return"),
        {"release": release},
    )
    wrong, digest = seal(con)
    if wrong or (reserved is not None and json.loads(reserved[0])["spends_sha256"] != digest):
        raise edited(max(1, wrong))
    write_sealed(con)
    for table in ("names", "balances"):
        con.execute(
            f"delete from {table} where subject in (select subject from sealed where nano = 0)"
        )
    con.execute("delete from spends where release = ?", (release,))
    n_gone: int = con.execute("select count(*) from sealed where nano = 0").fetchone()[0]
    return count(con) if n_balances is None else n_balances - n_gone


def count(con: Connection) -> int:
    """Return the number of balances, which is the number of subjects that were ever charged."""
    return int(con.execute("select count(*) from balances").fetchone()[0])


def recorded(con: Connection) -> int | None:
    """Return the number of balances that the ledger's log records last, or None if no log entry
    records it.
    """
    entry = chain.newest(con, "reserved", "aborted", "accepted")
    n_balances: int | None = json.loads(entry.payload).get("balances") if entry else None
    return n_balances


def check_count(con: Connection) -> int:
    """Check that the number of balances equals the number in the ledger's log, and return it.

    Raises:
        RequestError: if the numbers differ.
    """
    said = recorded(con)
    counted = count(con)
    if said is not None and said != counted:
        raise edited(abs(said - counted))
    return counted


def rebuild(con: Connection) -> int:
    """Recompute all balances as sums of the recorded charges, and return the number of balances
    that were wrong.
    """
    wrong = sum(1 for _ in con.stream(text("ledger/wrong_balances")))
    wrong += sum(1 for _ in edited_macs(con))
    if wrong:
        con.scratch("charges", CHARGES)
        con.execute("delete from balances")
        con.execute(
            "insert into charges (subject, balance, paid) select subject, 0, sum(nano) from "
            "spends group by subject "
            "order by subject"
        )
        seal(con)
        write_sealed(con)
    return wrong


def edited_macs(con: Connection) -> Iterator[bytes]:
    """Yield the subjects whose balance does not match its keyed hash."""
    for subject, nano, mac in con.stream("select subject, nano, mac from balances"):
        if mac != con.mac(subject, nano):
            yield subject
