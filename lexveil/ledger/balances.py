"""Balances: what subjects have spent, charged with proof that nobody edited them.

A balance is the sum of what its releases charged, and has a keyed hash (BLAKE2b under a key made from the salt) of
subject and amount. Both are checked of every subject that a release touches, before it spends. The number of balances
is in the chain, so that none can be left out together with its charges. The connection knows the keyed hash as
``mac(subject, nano)``.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from lexveil.errors import RequestError
from lexveil.ledger import chain
from lexveil.ledger.anchor import RESTORE
from lexveil.ledger.database import text


def edited(wrong: int) -> RequestError:
    """Balances that somebody edited."""
    return RequestError(
        f"{wrong:,} of the ledger's balances are not what releases charged: somebody edited them (`lexveil ledger "
        f"verify` says where); {RESTORE}"
    )


def spend_digest(rows: Iterable[tuple[Any, Any]]) -> str:
    """The chain's digest of what subjects pay: hash and nano-epsilon of each, in the order of hashes."""
    digest = hashlib.sha256()
    for subject, nano in rows:
        # What is no amount at all gets a digest that no amount has.
        digest.update(subject if isinstance(subject, bytes) else str(subject).encode())
        digest.update(nano.to_bytes(8, "big", signed=True) if isinstance(nano, int) else b"not a number")
    return digest.hexdigest()


def digest_of(con: sqlite3.Connection, release: int) -> str:
    """The digest of what subjects pay for a release."""
    return spend_digest(con.execute("select subject, nano from spends where release = ? order by subject", (release,)))


def give_back(con: sqlite3.Connection, release: int) -> None:
    """Take what subjects were to pay for a release off what they have spent.

    Raises:
        RequestError: if a balance or a charge was edited.
    """
    reserved = con.execute(
        "select payload from entries inner join releases on releases.reserved_seq = entries.seq where number = ?",
        (release,),
    ).fetchone()
    (wrong,) = con.execute(
        "select count(*) from spends left join balances using (subject) "
        "where release = ? and (balances.mac is null or balances.mac is not mac(subject, balances.nano))",
        (release,),
    ).fetchone()
    if wrong or (reserved is not None and json.loads(reserved[0])["spends_sha256"] != digest_of(con, release)):
        raise edited(max(1, wrong))
    con.execute(text("ledger/return"), {"release": release})
    con.execute("delete from names where subject in (select subject from balances where nano = 0)")
    con.execute("delete from balances where nano = 0")
    con.execute("delete from spends where release = ?", (release,))


def count(con: sqlite3.Connection) -> int:
    """How many balances there are."""
    return int(con.execute("select count(*) from balances").fetchone()[0])


def check_count(con: sqlite3.Connection) -> None:
    """See that there are as many balances as the newest entry says that changed them.

    Raises:
        RequestError: if there are not.
    """
    entry = chain.newest(con, "reserved", "aborted", "accepted")
    recorded = json.loads(entry.payload).get("balances") if entry else None
    if recorded is not None and recorded != count(con):
        raise edited(abs(recorded - count(con)))


def rebuild(con: sqlite3.Connection) -> int:
    """Make balances the sums of charges; how many were others."""
    wrong = len(con.execute(text("ledger/wrong_balances")).fetchall())
    wrong += con.execute("select count(*) from balances where mac is not mac(subject, nano)").fetchone()[0]
    if wrong:
        con.execute("delete from balances")
        con.execute(
            "insert into balances select subject, sum(nano), mac(subject, sum(nano)) from spends group by subject"
        )
    return int(wrong)
