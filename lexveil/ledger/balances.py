"""Balances: what subjects have spent, charged with proof that nobody edited them.

A balance is the sum of what its releases charged, and has a keyed hash (BLAKE2b under a key made
from the salt) of subject and amount. Both are checked of every subject that a release touches,
before it spends. The number of balances is in the chain, so that none can be left out together with
its charges.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from lexveil.errors import RequestError
from lexveil.ledger import chain
from lexveil.ledger.anchor import RESTORE
from lexveil.ledger.connection import Connection
from lexveil.ledger.database import text

CHARGES = (
    "subject blob, balance bigint, mac blob, paid bigint, n_withheld bigint, first_withheld bigint"
)


def edited(wrong: int) -> RequestError:
    """Balances that somebody edited."""
    return RequestError(
        f"{wrong:,} of the ledger's balances are not what releases charged: somebody edited "
        "them (`lexveil ledger "
        f"verify` says where); {RESTORE}"
    )


def spend_digest(rows: Iterable[tuple[Any, Any]]) -> tuple[int, int, str]:
    """How many subjects pay, how much, and the chain's digest of hash and nano-epsilon of each, in
    order of hashes.
    """
    digest, n_paying, total = hashlib.sha256(), 0, 0
    for subject, nano in rows:
        n_paying, total = n_paying + 1, total + (nano if isinstance(nano, int) else 0)
        # What is no amount at all gets a digest that no amount has.
        digest.update(subject if isinstance(subject, bytes) else str(subject).encode())
        digest.update(
            nano.to_bytes(8, "big", signed=True) if isinstance(nano, int) else b"not a number"
        )
    return n_paying, total, digest.hexdigest()


def seal(con: Connection, spent: str = "balance", release: int | None = None) -> tuple[int, str]:
    """Check the balances of temp.charges, put those with what is paid into temp.sealed, and what is
    paid into spends.

    The keyed hash is made here, not by the database: its key stays on this machine.

    Args:
        spent: SQL of what a subject has spent by its charges, which its balance must be.
        release: number of the release that is paid for; None puts nothing into spends.

    Returns:
        How many balances somebody edited; the chain's digest of what subjects pay, or are given
            back.
    """
    digest, wrong = hashlib.sha256(), 0

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
    """Make balances what temp.sealed says. New ones apart: PostgreSQL inserts them in half the time
    then.
    """
    for query in ("ledger/raise", "ledger/add"):
        con.execute(text(query))


def give_back(con: Connection, release: int) -> int:
    """Take what subjects were to pay for a release off what they have spent.

    Returns:
        How many balances there are then.

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
    """How many balances there are."""
    return int(con.execute("select count(*) from balances").fetchone()[0])


def recorded(con: Connection) -> int | None:
    """How many balances there are by the newest entry that changed them; None if none says."""
    entry = chain.newest(con, "reserved", "aborted", "accepted")
    n_balances: int | None = json.loads(entry.payload).get("balances") if entry else None
    return n_balances


def check_count(con: Connection) -> int:
    """How many balances there are, which is how many the chain says.

    Raises:
        RequestError: if it is not.
    """
    said, counted = recorded(con), count(con)
    if said is not None and said != counted:
        raise edited(abs(said - counted))
    return counted


def rebuild(con: Connection) -> int:
    """Make balances the sums of charges; how many were others."""
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
    """Subjects whose balance has another keyed hash."""
    for subject, nano, mac in con.stream("select subject, nano, mac from balances"):
        if mac != con.mac(subject, nano):
            yield subject
