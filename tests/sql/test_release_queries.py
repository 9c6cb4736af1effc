"""What becomes of a source's documents, and which versions are to be seen: by hand."""

from collections.abc import Iterator

import duckdb
import pytest

from lexveil.runtime import duckdb_session


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("create table incoming (position bigint, document varchar, content varchar, is_withdrawn boolean)")
        con.execute("create table known (document varchar, content varchar, version integer)")
        con.execute("create table gone (document varchar)")
        yield con


def test_fates(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("insert into known values ('b', 'b1', 1), ('b', 'b2', 2), ('c', 'c1', 1), ('d', 'd1', 1)")
    con.execute("insert into gone values ('e')")
    con.execute(
        "insert into incoming values (0, 'a', 'a1', false), (1, 'b', 'b2', false), (2, 'a', 'a1', false), "
        "(3, 'c', 'c2', false), (4, 'd', 'd1', true), (5, 'e', 'e9', false), (6, 'f', 'f1', true)"
    )
    rows = duckdb_session.run(con, "release/fates").fetchall()
    assert [(position, document, n_rows, version, fate) for position, document, _, n_rows, version, fate in rows] == [
        (0, "a", 2, 1, "new"),
        (1, "b", 1, 3, "duplicate"),
        (3, "c", 1, 2, "changed"),
        (4, "d", 1, 2, "withdrawn"),
        (5, "e", 1, 1, "withdrawn"),
        (6, "f", 1, 1, "withdrawn"),
    ]
    assert duckdb_session.run(con, "release/collision").fetchall() == []
    # What it was before is a change, too: the newest version counts.
    con.execute("update incoming set content = 'b1' where document = 'b'")
    assert (1, "changed") in [(row[0], row[5]) for row in duckdb_session.run(con, "release/fates").fetchall()]


def test_a_collision_names_the_first_two_rows(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "insert into incoming values (0, 'w', 'w1', false), (1, 'w', 'w2', true), (2, 'g', 'g1', false), "
        "(3, 'g', 'g2', false), (4, 'a', 'a1', false), (5, 'b', 'b1', false), (6, 'a', 'a1', false), "
        "(7, 'b', 'b2', false), (8, 'a', 'a2', false)"
    )
    con.execute("insert into gone values ('g')")
    assert duckdb_session.run(con, "release/collision").fetchall() == [(5, 7)]
