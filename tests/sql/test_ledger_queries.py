"""The figures of all balances, by hand; what else the ledger asks is tested where it asks it
(tests/ledger)."""

import sqlite3

import pytest

from lexveil.release.ledger.database import text

NANO = 10**9


@pytest.mark.parametrize(("cap", "n_at_cap"), [(99 * NANO, 2), (None, 0)])
def test_balances(cap, n_at_cap):
    """1 to 100 epsilon and half a nano of a hundred: quantiles are balances that there are."""
    with sqlite3.connect(":memory:") as con:
        con.executescript(text("ledger/schema"))
        assert con.execute(text("ledger/balances"), {"cap": 1}).fetchone() == (0, 0, *[None] * 7)
        con.executemany(
            "insert into balances values (?, ?, '')",
            [(bytes([n]), n * NANO + 5) for n in range(1, 101)],
        )
        row = con.execute(text("ledger/balances"), {"cap": cap}).fetchone()
    quantiles = [n * NANO + 5 for n in (1, 50, 90, 99, 100)]
    assert row == (100, n_at_cap, 5050, 500, *quantiles)
