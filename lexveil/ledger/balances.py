"""Balances: what subjects have spent, read with proof that nobody edited them, and written with it.

A balance is the sum of what its releases charged, and has a keyed hash (BLAKE2b under a key made from the salt) of
subject and amount. Both are checked of every subject that a release touches, before it spends. The number of balances
is in the chain, so that none can be left out together with its charges.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import numpy as np

from lexveil.errors import RequestError
from lexveil.ledger.amounts import Ints, Keys, distinct, spend_digest
from lexveil.ledger.anchor import ACCEPT
from lexveil.ledger.database import text
from lexveil.ledger.subjects import Hasher, as_keys

ROWS = 100  # of one statement
FEW = 4  # times as many subjects of the ledger are still read in one go


def read(con: sqlite3.Connection, subjects: Keys, hashes: list[bytes], hasher: Hasher) -> Ints:
    """What subjects have spent so far, in their order, shape (m,).

    Raises:
        RequestError: if one of the balances was edited, or the charges behind it.
    """
    if not hashes:
        return np.zeros(0, dtype=np.int64)
    try:
        balances, charged, macs = _rows(con, subjects, hashes)
        wrong = int(np.count_nonzero(balances != charged)) + sum(
            hasher.mac(key, nano) != mac for key, nano, mac in macs
        )
    except (TypeError, ValueError, AttributeError, OverflowError):  # what is read is not of the form that we write
        wrong = 1
    if wrong:
        raise edited(wrong)
    return balances


def edited(wrong: int) -> RequestError:
    """Balances that somebody edited."""
    return RequestError(
        f"{wrong:,} of the ledger's balances are not what releases charged: somebody edited them. `lexveil ledger "
        f"verify` says where; bring the ledger back from your copy, or, {ACCEPT}"
    )


def _rows(
    con: sqlite3.Connection, subjects: Keys, hashes: list[bytes]
) -> tuple[Ints, Ints, list[tuple[bytes, int, bytes]]]:
    """Balances and the sums of charges, (m,) each, and the rows with their keyed hashes."""
    balances, charged = np.zeros(len(hashes), dtype=np.int64), np.zeros(len(hashes), dtype=np.int64)
    ends, most = (hashes[0], hashes[-1]), FEW * len(hashes)
    n_between = con.execute(
        "select count(*) from (select 1 from balances where subject between ? and ? limit ?)", (*ends, most + 1)
    ).fetchone()[0]
    if n_between <= most:
        # Where the ledger knows few others in between, it is faster to read them too than to look each one up.
        rows = con.execute("select subject, nano, mac from balances where subject between ? and ?", ends).fetchall()
        _fill(balances, subjects, [(key, nano) for key, nano, _ in rows])
        sums = con.execute(
            "select subject, sum(nano) from spends where subject between ? and ? group by subject", ends
        ).fetchall()
        _fill(charged, subjects, sums)
        return balances, charged, rows
    con.execute("create temp table if not exists wanted (subject blob primary key, position integer)")
    con.execute("delete from wanted")
    con.executemany("insert into wanted values (?, ?)", zip(hashes, range(len(hashes)), strict=True))
    macs = []
    for position, nano, mac, total in con.execute(text("ledger/wanted")):
        balances[position], charged[position] = nano or 0, total or 0
        if nano is not None:
            macs.append((hashes[position], nano, mac))
    return balances, charged, macs


def _fill(values: Ints, subjects: Keys, rows: list[tuple[bytes, int]]) -> None:
    if not rows:
        return
    keys, amounts = zip(*rows, strict=True)
    position = distinct(np.concatenate([subjects, as_keys(keys)]))[1]
    known = np.zeros(len(position), dtype=np.int64)
    known[position[len(subjects) :]] = amounts
    values[:] = known[position[: len(subjects)]]


def charge(con: sqlite3.Connection, release: int, hashes: list[bytes], paid: Ints, after: Ints, hasher: Hasher) -> None:
    """Write what subjects pay for a release, and what they have spent then: the only way in which a balance grows.

    Args:
        paid: (m,) nano-epsilon, greater than 0.
        after: (m,) balances with it.
    """
    balances = [hasher.mac(key, nano) for key, nano in zip(hashes, after.tolist(), strict=True)]
    _many(con, "insert into spends values", f"({release}, ?, ?)", "", hashes, paid.tolist())
    _many(con, "insert into balances values", "(?, ?, ?)", UPDATE, hashes, after.tolist(), balances)


UPDATE = "on conflict (subject) do update set nano = excluded.nano, mac = excluded.mac"


def _many(con: sqlite3.Connection, sql: str, row: str, end: str, *columns: list[Any]) -> None:
    """Write many rows a statement: twice as fast as one."""
    values: list[Any] = [None] * (len(columns) * len(columns[0]))
    for number, column in enumerate(columns):
        values[number :: len(columns)] = column
    for start in range(0, len(values), len(columns) * ROWS):
        batch = values[start : start + len(columns) * ROWS]
        con.execute(f"{sql} {', '.join([row] * (len(batch) // len(columns)))} {end}", batch)


def give_back(con: sqlite3.Connection, release: int) -> None:
    """Take what subjects were to pay for a release off what they have spent.

    Raises:
        RequestError: if a balance or a charge was edited.
    """
    reserved = con.execute(
        "select payload from entries inner join releases on releases.reserved_seq = entries.seq where number = ?",
        (release,),
    ).fetchone()
    digest = spend_digest(
        con.execute("select subject, nano from spends where release = ? order by subject", (release,))
    )
    (wrong,) = con.execute(
        "select count(*) from spends left join balances using (subject) "
        "where release = ? and (balances.mac is null or balances.mac <> mac(subject, balances.nano))",
        (release,),
    ).fetchone()
    if wrong or (reserved is not None and json.loads(reserved[0])["spends_sha256"] != digest):
        raise edited(max(1, wrong))
    con.execute(text("ledger/return"), {"release": release})
    con.execute("delete from names where subject in (select subject from balances where nano = 0)")
    con.execute("delete from balances where nano = 0")
    con.execute("delete from spends where release = ?", (release,))


def count(con: sqlite3.Connection) -> int:
    """How many balances there are."""
    ((n_balances,),) = con.execute("select count(*) from balances").fetchall()
    return int(n_balances)


def check_count(con: sqlite3.Connection) -> None:
    """See that there are as many balances as the newest entry says that changed them.

    Raises:
        RequestError: if there are not.
    """
    row = con.execute(
        "select payload from entries where kind in ('reserved', 'aborted', 'accepted') order by seq desc limit 1"
    ).fetchone()
    said = json.loads(row[0]).get("balances") if row else None
    if said is not None and said != count(con):
        raise edited(abs(said - count(con)))


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
