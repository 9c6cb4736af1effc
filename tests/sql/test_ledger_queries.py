"""The queries of the ledger, each alone on a few rows."""

import json
import sqlite3
from collections.abc import Iterator

import pytest

from lexveil.ledger.database import text

ANA, BEN, ZOE = b"a" * 16, b"b" * 16, b"z" * 16
NANO = 10**9


@pytest.fixture
def con() -> Iterator[sqlite3.Connection]:
    """ana paid 2 and 3, ben 4; the second release is reserved by entry 5, the first by entry 3."""
    with sqlite3.connect(":memory:") as opened:
        opened.executescript(text("ledger/schema"))
        opened.executemany(
            "insert into releases values (?, ?, ?, ?, ?, ?)",
            [(1, "one", "committed", 1, None, 3), (2, "two", "reserved", 1, 4, 5)],
        )
        opened.executemany(
            "insert into entries values (?, ?, ?, ?, ?, '', ?)",
            [
                (2, "t2", "one", "opened", '{"about":{}}', "2"), (3, "t3", "one", "reserved", "{}", "3"),
                (4, "t4", "two", "opened", '{"about":{}}', "4"), (5, "t5", "two", "reserved", "{}", "5"),
            ],
        )  # fmt: skip
        opened.executemany("insert into spends values (?, ?, ?)", [(1, ANA, 2), (1, BEN, 4), (2, ANA, 3)])
        opened.executemany("insert into balances values (?, ?, 'm')", [(ANA, 5), (BEN, 4)])
        opened.create_function("mac", 2, lambda subject, nano: subject[:1] + b"%d" % nano)
        yield opened


def test_return(con: sqlite3.Connection) -> None:
    con.execute(text("ledger/return"), {"release": 2})
    found = con.execute("select subject, nano, mac from balances order by subject").fetchall()
    assert found == [(ANA, 2, b"a2"), (BEN, 4, "m")]
    con.execute("delete from spends where release = 2")
    con.execute(text("ledger/return"), {"release": 1})
    assert con.execute("select nano from balances").fetchall() == [(0,), (0,)]


def test_charges(con: sqlite3.Connection) -> None:
    """Room is 9: ana, who has spent 5, pays 3 and then nothing, though 1 would fit; no document costs more than 3."""
    con.execute(text("ledger/asked"))
    asked = [
        (3, 0, ANA, 7, None),
        (3, 1, ANA, 2, None),
        (4, 0, ZOE, 1, None),
        (3, 2, ZOE, 2, "zoe"),
        (3, 3, ANA, 1, None),
    ]
    con.executemany("insert into asked values (?, ?, ?, ?, ?)", asked)
    con.execute(f"create temp table charges as {text('ledger/charges')}", {"release": 3, "most": 3, "limit": 9})
    assert con.execute("select * from charges").fetchall() == [(ANA, 5, 3, 2, 1), (ZOE, 0, 2, 0, None)]
    assert con.execute(text("ledger/reserved")).fetchone() == (2, 2, 1, 2, 0, 5, 8)
    assert sorted(con.execute(text("ledger/withheld"), {"release": 3})) == [(1,), (3,)]
    con.execute("update balances set mac = mac(subject, nano)")
    assert con.execute(text("ledger/edited")).fetchone() == (0,)
    con.execute(text("ledger/raise"))
    rows = con.execute("select * from balances order by subject").fetchall()
    assert rows == [(ANA, 8, b"a8"), (BEN, 4, b"b4"), (ZOE, 2, b"z2")]
    con.execute(text("ledger/names"), {"release": 3})
    assert con.execute("select * from names").fetchall() == [(ZOE, "zoe")]


@pytest.mark.parametrize(
    "edit",
    [
        "update balances set nano = 6", "update balances set nano = 'x'", "update balances set mac = 'm'",
        "delete from balances", "delete from spends", "update spends set nano = nano + 1",
    ],
)  # fmt: skip
def test_edited(con: sqlite3.Connection, edit: str) -> None:
    con.execute("update balances set mac = mac(subject, nano)")
    con.execute(edit)
    con.execute(
        "create temp table charges as select ? as subject, (select nano from balances where subject = ?) as n",
        (ANA, ANA),
    )
    con.execute("alter table charges rename column n to balance")
    assert con.execute(text("ledger/edited")).fetchone() == (1,)


def test_writer(con: sqlite3.Connection) -> None:
    """Who has ended, and who asks, writes nothing."""
    con.executemany("insert into files (release, partial) values (?, ?)", [(1, b"/p"), (2, b"/p"), (2, b"/q")])
    assert con.execute(text("ledger/writer"), {"partial": b"/p", "release": 3}).fetchall() == [("two", "reserved")]
    assert con.execute(text("ledger/writer"), {"partial": b"/p", "release": 2}).fetchall() == []
    assert con.execute(text("ledger/writer"), {"partial": b"/r", "release": 3}).fetchall() == []


def test_over_cap(con: sqlite3.Connection) -> None:
    """Only the release with a cap counts, and all that was reserved before it: ana came to 5, above 4."""
    assert con.execute(text("ledger/over_cap")).fetchall() == [(ANA, 5, 4)]
    con.execute("update releases set cap = 5 where number = 2")
    assert con.execute(text("ledger/over_cap")).fetchall() == []


def test_wrong_balances(con: sqlite3.Connection) -> None:
    assert con.execute(text("ledger/wrong_balances")).fetchall() == []
    con.execute("update balances set nano = 6 where subject = ?", (ANA,))
    con.execute("delete from balances where subject = ?", (BEN,))
    con.execute("insert into balances values (?, 1, '')", (ZOE,))
    assert con.execute(text("ledger/wrong_balances")).fetchall() == [(ANA, -1), (BEN, 4), (ZOE, -1)]


def test_balances(con: sqlite3.Connection) -> None:
    """1 to 100 epsilon and half a nano of a hundred: quantiles are balances that there are."""
    con.execute("delete from balances")
    con.executemany("insert into balances values (?, ?, '')", [(bytes([n]), n * NANO + 5) for n in range(1, 101)])
    row = con.execute(text("ledger/balances"), {"cap": 99 * NANO}).fetchone()
    assert row == (100, 2, 5050, 500, NANO + 5, 50 * NANO + 5, 90 * NANO + 5, 99 * NANO + 5, 100 * NANO + 5)
    assert con.execute(text("ledger/balances"), {"cap": None}).fetchone()[:2] == (100, 0)


def test_balances_of_nobody(con: sqlite3.Connection) -> None:
    con.execute("delete from balances")
    assert con.execute(text("ledger/balances"), {"cap": 1}).fetchone() == (0, 0, *[None] * 7)


def test_subject(con: sqlite3.Connection) -> None:
    rows = con.execute(text("ledger/subject"), {"subject": ANA}).fetchall()
    assert rows == [("one", "committed", "t3", 2), ("two", "reserved", "t5", 3)]


def test_releases(con: sqlite3.Connection) -> None:
    con.execute("delete from entries where seq = 5")
    con.execute("""update entries set payload = '{"documents":3,"withheld":1,"total":2500000000}' where seq = 3""")
    newest, oldest = con.execute(text("ledger/releases"), {"limit": 5}).fetchall()
    assert newest == ("two", "reserved", "t4", "{}", None) and oldest[:4] == ("one", "committed", "t2", "{}")
    reserved = json.loads(oldest[4])
    assert (reserved["charged"], reserved["epsilon"], reserved["cap"]) == (2, 2.5, None)
    assert len(con.execute(text("ledger/releases"), {"limit": 1}).fetchall()) == 1


def test_export(con: sqlite3.Connection) -> None:
    con.execute("insert into names values (?, 'ana')", (ANA,))
    assert con.execute(text("ledger/export")).fetchall() == [
        (ANA.hex(), 5, 5e-9, 2, "ana"),
        (BEN.hex(), 4, 4e-9, 1, None),
    ]


def test_a_subject_never_owes_less_than_nothing(con: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("update balances set nano = -1 where subject = ?", (ANA,))
