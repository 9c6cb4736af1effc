"""A real MariaDB on loopback: rows come by a cursor of the server, with their types; passwords are the client's."""

from __future__ import annotations

import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.databases import mysql
from lexveil.databases.address import read_address
from lexveil.databases.base import BATCH
from lexveil.databases.query import spool_query
from lexveil.errors import RequestError
from tests.databases.conftest import PASSWORD, USER, Server

pymysql = pytest.importorskip("pymysql")

pytestmark = pytest.mark.slow

SECRET = "Jane Doe owes money"

TYPES = [
    ("tinyint", "-1", pa.int64()),
    ("bigint", "9223372036854775807", pa.int64()),
    ("bigint unsigned", "18446744073709551615", pa.uint64()),
    ("double", "1.5", pa.float64()),
    ("decimal(10,2)", "12345678.50", pa.decimal128(38, 2)),
    ("decimal(50,2)", "1e40", pa.decimal256(76, 2)),
    ("text", "'zwölf € 💧'", pa.string()),
    ("enum('a','b')", "'b'", pa.string()),
    ("blob", "x'00ff'", pa.binary()),
    ("date", "'1999-12-31'", pa.date32()),
    ("time", "'-838:59:59'", pa.string()),
    ("datetime(6)", "'2026-11-23 01:02:03.456789'", pa.timestamp("us")),
    ("timestamp", "'2026-11-23 01:02:03'", pa.timestamp("us", "UTC")),
    ("json", """'{"a": 1}'""", pa.string()),
]


@pytest.fixture
def crm(mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new database crm, its address, and an option file as the client reads it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    (tmp_path / ".my.cnf").write_text(f"[client]\npassword={PASSWORD}\n")
    sql(
        mariadb,
        "drop database if exists crm",
        "create database crm character set utf8mb4",
        "use crm",
        "create table tickets (id int primary key, body text)",
        f"insert into tickets select seq, concat('{SECRET} ', seq) from seq_1_to_5000",
    )
    return mariadb.address()


def sql(server: Server, *statements: str) -> None:
    with (
        pymysql.connect(
            host="127.0.0.1", port=server.port, user=USER, password=PASSWORD, autocommit=True
        ) as connection,
        connection.cursor() as cursor,
    ):
        for statement in statements:
            cursor.execute(statement)


def test_types_are_kept(crm: str, mariadb: Server, tmp_path: Path) -> None:
    columns = ", ".join(f"c{number} {kind} null" for number, (kind, _, _) in enumerate(TYPES))
    nulls = ", ".join("null" for _ in TYPES)
    values = ", ".join(value for _, value, _ in TYPES)
    zone = "set time_zone = '+00:00'"
    sql(mariadb, zone, "use crm", f"create table kinds ({columns})", f"insert into kinds values ({values}), ({nulls})")
    spool_query(read_address(crm), "select * from kinds order by c0 desc;", tmp_path / "rows")
    table = pq.read_table(tmp_path / "rows")
    assert [field.type for field in table.schema] == [arrow for _, _, arrow in TYPES]
    full, empty = table.to_pylist()
    assert set(empty.values()) == {None}
    assert (full["c4"], full["c6"], full["c10"]) == (decimal.Decimal("12345678.50"), "zwölf € 💧", "-838:59:59")
    assert str(full["c12"]) == "2026-11-23 01:02:03+00:00"


def test_few_rows_are_held(crm: str) -> None:
    with mysql.rows(read_address(crm), "select * from tickets") as rows:
        assert [batch.num_rows for batch in rows.batches] == [BATCH, BATCH, 1000]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select * from absent", "doesn't exist"),
        ("select , from tickets", "error in your SQL syntax"),
        ("select id, id from tickets", "same name"),
        ("delete from tickets", "read-only"),
        ("set @a = 1", "gives no rows"),
        (f"select cast('{SECRET}' as date) + exp(999) as d from tickets", "may hold a value and is not shown"),
        ("select cast('0000-00-00' as date) as day", "`day` holds a value that is none of date32"),
        ("select id, kill_me.body from tickets", "Unknown column"),
        ("set statement max_statement_time = 0.1 for select sleep(5) as a", "max_statement_time"),
    ],
)
def test_what_cannot_be_read_is_one_line(crm: str, tmp_path: Path, query: str, says: str) -> None:
    with pytest.raises(RequestError) as caught:
        spool_query(read_address(crm), query, tmp_path / "rows")
    message = str(caught.value)
    assert says in message and "\n" not in message and SECRET not in message.replace(query, "")


def test_passwords_are_those_of_the_client(crm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".my.cnf").unlink()
    with pytest.raises(RequestError, match=r"passwords are read from the section \[client\]"):
        spool_query(read_address(crm), "select 1 as a", tmp_path / "rows")
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    spool_query(read_address(crm), "select 1 as a", tmp_path / "rows")
    with pytest.raises(RequestError, match="no connection"):
        spool_query(read_address("mysql://127.0.0.1:1/crm"), "select 1 as a", tmp_path / "rows")


def test_a_connection_that_drops_is_named(crm: str, mariadb: Server) -> None:
    query = "select /* dropped */ seq as id, repeat('words of a text ', 40) as text from seq_1_to_100000"
    with (
        pytest.raises(RequestError, match=r"connection was lost after [1-9][\d,]* rows"),
        mysql.rows(read_address(crm), query) as rows,
    ):
        for number, _ in enumerate(rows.batches):
            if number == 0:
                find = "select id into @who from information_schema.processlist where info like '%/* dropped */%' "
                sql(mariadb, f"{find} and id <> connection_id()", "execute immediate concat('kill ', @who)")
