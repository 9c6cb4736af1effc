"""Rows of SQLite are read in one transaction, and go back in one."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import privatize_file

from lexveil.base.errors import LexveilError, RequestError
from lexveil.io.databases import sqlite
from lexveil.io.databases.address import read_address
from lexveil.io.databases.base import spool_query
from tests.databases.conftest import NONE, SECRET


@pytest.fixture
def crm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("crm.db")) as con, con:
        con.execute(
            "create table tickets (id integer primary key, body text, price real, raw blob, "
            "day date)"
        )
        rows = [
            (i, None if i <= 3000 else f"text {i}", i if i % 2 else i / 2) for i in range(1, 5001)
        ]
        con.executemany("insert into tickets values (?, ?, ?, x'00', '2026-11-23')", rows)
    return "sqlite:///crm.db"


def read(address, sql, out):
    spool_query(read_address(address), sql, out)
    return pq.read_table(out)


def test_types_are_those_of_the_values_and_texts_may_follow_nulls(crm, tmp_path):
    table = read(
        crm,
        "select id, body, price, raw, day, null as empty from tickets order by id;",
        tmp_path / "rows",
    )
    kinds = {
        "id": pa.int64(),
        "body": pa.string(),
        "price": pa.float64(),
        "raw": pa.binary(),
        "day": pa.string(),
    }
    assert table.schema == pa.schema(kinds | {"empty": pa.string()})
    assert table.num_rows == 5000 and table["body"][2999:3001].to_pylist() == [None, "text 3001"]
    assert table["price"][:2].to_pylist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("address", "sql", "says"),
    [
        ("crm.db", f"select , '{SECRET}' from tickets", "syntax error"),
        ("crm.db", f"select '{SECRET}' as a union select 1", "several types"),
        ("crm.db", "delete from tickets returning id", "is read-only"),
        ("crm.db", f"select cast(x'ff' as text) || '{SECRET}' as t", "cannot be read"),
        ("absent.db", "select 1", "no such file"),
        ("text.db", "select * from t", "not an SQLite database"),
    ],
)
def test_what_cannot_be_read_is_one_line(crm, tmp_path, address, sql, says):
    (tmp_path / "text.db").write_text("This is a text, and no database. " * 100)
    with pytest.raises(RequestError, match=says) as caught:
        read(f"sqlite:///{address}", sql, tmp_path / "rows")
    assert "\n" not in str(caught.value) and SECRET not in str(caught.value)
    assert not (tmp_path / "absent.db").exists()


def test_a_lock_is_waited_for_and_then_named(crm, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.05)
    with closing(sqlite3.connect("crm.db")) as other:
        other.execute("begin exclusive")
        with pytest.raises(RequestError, match="another process has locked the database"):
            read(crm, "select * from tickets", tmp_path / "rows")


def test_rows_go_back_with_their_record_or_not_at_all(crm, tmp_path):
    sql = "select id, body as text, price, raw from tickets"
    done = privatize_file(crm, crm, sql=sql, table="copied", **NONE)
    assert (
        done.target == tmp_path / "copied" and done.table == "copied" and not done.target.exists()
    )
    with closing(sqlite3.connect("crm.db")) as con:
        assert con.execute("select * from copied").fetchall() == con.execute(sql).fetchall()
        (kept,) = con.execute(
            "select record from lexveil_records where table_name = 'copied'"
        ).fetchone()
        assert json.loads(kept) == json.loads(Path("copied.record.json").read_text())
        con.execute("create table strict_one (id integer check (id < 4000), text, price, raw)")
        con.execute("insert into strict_one (id) values (7)")
        con.commit()
        with pytest.raises(LexveilError, match="is unchanged") as caught:
            privatize_file(crm, crm, sql=sql, table="strict_one", if_exists="replace", **NONE)
        assert "text 4" not in str(caught.value)
        assert con.execute("select id from strict_one").fetchall() == [(7,)]
        assert con.execute("select count(*) from lexveil_records").fetchone() == (1,)
    assert not list(tmp_path.glob("*strict_one*"))


def test_a_table_that_is_there_is_refused_added_to_or_replaced(crm):
    def put(if_exists, n_rows):
        sql = f"select id, body as text from tickets where id <= {n_rows}"
        privatize_file(crm, "sqlite:///new.db", sql=sql, table="t", if_exists=if_exists, **NONE)
        with pytest.raises(
            RequestError, match="rows that may still be in the table, so run this in another folder"
        ):
            privatize_file(crm, "sqlite:///new.db", sql=sql, table="t", if_exists="append", **NONE)
        for ending in ("record.json", "statement.txt"):
            Path(f"t.{ending}").rename(f"{if_exists}.{ending}")
        with closing(sqlite3.connect("new.db")) as con:
            return int(con.execute("select count(*) from t").fetchone()[0])

    assert (put("fail", 5), put("append", 3), put("replace", 2)) == (5, 8, 2)
    with pytest.raises(RequestError, match="exists already"):
        put("fail", 5)


def test_a_column_that_the_table_lacks_is_found_before_anything_is_spent(outside):
    with closing(sqlite3.connect("crm.db")) as con, con:
        con.execute("create table t (text text)")
    how = {
        "mechanism": "tem",
        "strategy": "S1",
        "epsilon": 10.0,
        "average_words": 11,
        "model": "toy",
    }
    for if_exists in ("append", "replace"):
        sql = "select 'The fire burned.' as text, 1 as more"
        with pytest.raises(RequestError, match="no column `more`"):
            privatize_file(
                "sqlite:///crm.db",
                "sqlite:///crm.db",
                sql=sql,
                table="t",
                if_exists=if_exists,
                **how,
            )
    assert [file.name for file in outside.iterdir()] == ["crm.db"]
    assert not (outside.parent / "home" / "ledger").exists()


def test_what_belongs_together_is_asked_for_together(crm, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    for source, target, options, says in (
        (crm, "out.parquet", {}, "needs sql"),
        (crm, crm, {"sql": "select 'a' as text"}, "add table"),
        (crm, "out.parquet", {"sql": "select 'a' as text", "table": "t"}, "only for a database"),
        (crm, "-", {"sql": "select 'a' as text"}, "standard output"),
        (tmp_path / "a.jsonl", "b.jsonl", {"sql": "select 1"}, "only for a database"),
        (tmp_path / "a.jsonl", crm, {"table": "t"}, "which have types"),
        (crm, "out.parquet", {"sql": "select 1 as text"}, "not text"),
        (crm, "out.parquet", {"sql": "select 'a' as text where false"}, "no document"),
    ):
        with pytest.raises(RequestError, match=says):
            privatize_file(source, target, **options, **NONE)
    assert not list(tmp_path.glob("*out*"))
