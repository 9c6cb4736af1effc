"""Releases in few words."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.reservation import Reservation
from lexveil.release.ledger.transaction import Transaction

NANO = 10**9


def asked(
    release: Transaction, *subjects: str, budget: float = 1.0, cap: float | None = None, **more: str
) -> Reservation:
    """Ask for one whole document of each subject, in order, and reserve."""
    release.request(subjects, np.full(len(subjects), budget))
    return release.reserve(budget, cap, **more)


def spend(
    ledger: Ledger, *subjects: str, budget: float = 1.0, cap: float | None = None
) -> Reservation:
    """A whole release, to standard output."""
    with ledger.begin({"test": True}) as release:
        reserved = asked(release, *subjects, budget=budget, cap=cap)
        release.spend()
        release.commit()
    return reserved


def balance(ledger: Ledger, key: str) -> int:
    """Return the spending of a subject in nano-epsilon."""
    rows = ledger.database.rows(
        "select nano from balances where subject = ?", (ledger.hasher.one(key),)
    )
    return rows[0][0] if rows else 0


def states(ledger: Ledger) -> list[str]:
    return [
        state for (state,) in ledger.database.rows("select state from releases order by number")
    ]


def write(release: Transaction, folder: Path, *names: str, final: str = "{}") -> None:
    """Spend, write files of their names' content where they were announced (.NAME), and say so."""
    release.spend()
    for name in names:
        (folder / f".{name}").write_text(name)
    release.written(
        [(folder / f".{name}", folder / final.format(name), sha(name)) for name in names]
    )


def sha(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def edit(folder: Path, *statements: str) -> None:
    """Change the database behind the ledger's back; what it forbids, too."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as con, con:
        con.execute("pragma ignore_check_constraints = on")
        for statement in statements:
            con.execute(statement)
