"""A real PostgreSQL on loopback: rows stream, types are kept, and what goes wrong leaves nothing
behind."""

import json
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking import privatize_file

from lexveil import Ledger, LexveilError, RequestError
from lexveil.io.artifacts.project import Project
from lexveil.io.databases.address import read_address
from lexveil.io.databases.base import connected, spool_query
from lexveil.release.charge import ledger_of
from lexveil.release.outputs import Outputs
from tests.databases.conftest import NONE, PASSWORD, SECRET, USER, sql

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")

pytestmark = pytest.mark.slow

TEM = {
    "mechanism": "tem",
    "strategy": "S3",
    "document_budget": 300.0,
    "model": "toy",
}

# Of each type: its name, a value of it, what it is in Arrow.
TYPES = [
    ("int2", "'-32768'", pa.int16()),
    ("int8", "'9223372036854775807'", pa.int64()),
    ("float8", "'NaN'", pa.float64()),
    ("numeric(10,2)", "'12345678.50'", pa.decimal128(10, 2)),
    ("numeric(60,30)", "'0.000000000000000000000000000001'", pa.decimal256(60, 30)),
    ("numeric", "'123456789012345678901234567890.125'", pa.string()),
    ("bool", "'t'", pa.bool_()),
    ("text", "'zwölf € 💧'", pa.string()),
    ("varchar(9)", "'a'", pa.string()),
    ("bytea", r"'\x00ff'", pa.binary()),
    ("date", "'1999-12-31'", pa.date32()),
    ("time", "'23:59:59.999999'", pa.time64("us")),
    ("timestamp", "'2026-11-23 01:02:03.456789'", pa.timestamp("us")),
    ("timestamptz", "'2026-11-23 01:02:03.456789+02'", pa.timestamp("us", "UTC")),
    ("interval", "'1 mon 2 days 03:04:05.6'", pa.string()),
    ("uuid", "'83289c8d-6eec-4cec-bb65-e36ec14a17ca'", pa.string()),
    ("jsonb", """'{"a": {"b": "c"}}'""", pa.string()),
    ("mood", "'calm'", pa.string()),
    ("int4[]", "'{1,NULL,3}'", pa.list_(pa.int32())),
    ("numeric[]", "'{1.50}'", pa.list_(pa.string())),
]


@pytest.fixture
def crm(database, tmp_path, monkeypatch):
    """A database crm with tickets, and its address."""
    if not Path.cwd().is_relative_to(tmp_path):
        monkeypatch.chdir(tmp_path)
    sql(
        database,
        "create type mood as enum ('calm')",
        "create table tickets (id int primary key, customer uuid default gen_random_uuid(), "
        "body text)",
        "insert into tickets (id, body) select i, 'the people said that the fire was under "
        "control near ' || i "
        "from generate_series(1, 20) i",
        f"update tickets set body = '{SECRET}' where id = 7",
        "update tickets set body = null where id = 9",
    )
    return database


def charged():
    """The states of the releases of the user's ledger, and the nano-epsilon that is spent in
    all."""
    params = ledger_of(Project.find())
    with Ledger.open(params.folder, anchor=params.anchor) as ledger:
        states = [
            state for (state,) in ledger.database.rows("select state from releases order by number")
        ]
        ((spent,),) = ledger.database.rows("select coalesce(sum(nano), 0) from balances")
    return states, int(spent)


def test_types_are_kept_there_and_back(crm, tmp_path):
    columns = ", ".join(f"c{number} {kind}" for number, (kind, _, _) in enumerate(TYPES))
    values = ", ".join(value for _, value, _ in TYPES)
    nulls = ", ".join("null" for _ in TYPES)
    sql(
        crm,
        f"create table kinds ({columns}, text text)",
        f"insert into kinds values ({values}, 'a'), ({nulls}, 'b')",
    )
    privatize_file(crm, tmp_path / "out.parquet", sql="select * from kinds order by text", **NONE)
    schema = pq.read_schema(tmp_path / "out.parquet")
    for number, (kind, _, arrow) in enumerate(TYPES):
        field = schema.field(f"c{number}").type
        assert (
            field.value_type == arrow.value_type if pa.types.is_list(arrow) else field == arrow
        ), kind
    privatize_file(crm, crm, sql="select * from kinds order by text;", table="copied", **NONE)
    names = ", ".join(f"c{number}::text" for number in range(len(TYPES)))
    assert sql(crm, f"select {names} from copied order by text") == sql(
        crm, f"select {names} from kinds order by text"
    )
    types = (
        "select attname, format_type(atttypid, -1) from pg_attribute where attnum > 0 "
        "and attrelid = "
    )
    differ = (
        dict(sql(crm, f"{types}'kinds'::regclass")).items()
        ^ dict(sql(crm, f"{types}'copied'::regclass")).items()
    )
    # which comes back as text
    assert {TYPES[int(name[1:])][0] for name, _ in differ} == {"varchar(9)"}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("with gone as (delete from tickets returning id) select * from gone", "read-only"),
        ("select * from absent", 'relation "absent" does not exist'),
        ("select 1; select 2", "multiple commands"),
        ("select id, id from tickets", "same name"),
        (f"select '{SECRET}'::int as id", "SQLSTATE 22P02"),
        ("select body::int as id from tickets where id = 7", "the query failed after 0 rows"),
        (
            "select 1 / (i - 100000) as id from generate_series(1, 100000) i",
            "may contain a value and is not shown",
        ),
        ("select 'NaN'::numeric(5,2) as price", "`price` has a value that the type decimal"),
    ],
)
def test_what_cannot_be_read_is_one_line(crm, tmp_path, query, says):
    with pytest.raises(RequestError) as caught:
        spool_query(read_address(crm), query, tmp_path / "rows")
    message = str(caught.value)
    assert (
        says in message
        and "\n" not in message
        and SECRET not in message
        and PASSWORD not in message
    )
    assert sql(crm, "select count(*) from tickets") == [(20,)]


def test_who_is_refused_reads_why(crm, tmp_path, monkeypatch):
    def refused(address, query="select * from tickets"):
        with pytest.raises(RequestError) as caught:
            spool_query(read_address(address), query, tmp_path / "rows")
        assert "\n" not in str(caught.value) and "tiger" not in str(caught.value)
        return str(caught.value)

    sql(crm, "drop role if exists reader", "create role reader login password 'tiger'")
    other = crm.replace(f"{USER}@", "reader@")
    assert "passwords are read from ~/.pgpass" in refused(other)
    monkeypatch.setenv("PGPASSWORD", "tiger")
    assert "permission denied for table tickets" in refused(other)
    monkeypatch.setenv("PGPASSWORD", "lion")
    assert "password authentication failed" in refused(other)
    assert "Connection refused" in refused("postgresql://127.0.0.1:1/crm")


def test_a_connection_that_drops_is_named(crm):
    query = (
        "select i as id, repeat('words of a text ', 40) as text from generate_series(1, 200000) i"
    )
    with (
        pytest.raises(
            RequestError,
            match=r"connection was lost after [1-9][\d,]* rows; nothing was released or spent",
        ),
        connected(read_address(f"{crm}?application_name=dropped"), [], to_write=False) as database,
    ):
        for number, _ in enumerate(database.rows(query).batches):
            if number == 0:
                sql(
                    crm,
                    "select pg_terminate_backend(pid) from pg_stat_activity where "
                    "application_name = 'dropped'",
                )


def test_a_lock_is_waited_for_and_then_named(crm, tmp_path):
    address = f"{crm}?options=-c%20lock_timeout%3D50ms"
    with closing(dbapi.connect(crm)) as other, closing(other.cursor()) as cursor:
        cursor.execute("lock table tickets in access exclusive mode")
        with pytest.raises(RequestError, match="another process held a lock"):
            spool_query(read_address(address), "select * from tickets", tmp_path / "rows")


def test_a_release_is_charged_and_its_record_goes_with_the_table(outside, crm):
    query = "select id, customer, body as text from tickets order by id"
    done = privatize_file(
        crm, crm, sql=query, table="public.private", subject_column="customer", **TEM
    )
    ((name, release, kept),) = sql(
        crm, "select table_name, release, record::text from lexveil_records"
    )
    assert name == "private" and json.loads(kept) == json.loads(
        (outside / "public.private.record.json").read_text()
    )
    assert (
        done.record.release is not None
        and release == done.record.release.id
        and done.record.output is None
    )
    rows = sql(
        crm, "select p.text, t.body from private p join tickets t using (id, customer) order by id"
    )
    assert len(rows) == 20 and rows[8] == (None, None) and rows[6][0] not in (None, SECRET)
    assert pq.read_metadata(outside / "public.private.tokens.parquet").num_rows > 100
    assert not (outside / "public.private").exists() and not list(outside.glob(".partial*"))
    state, spent = charged()
    assert state == ["committed"] and 0 < spent <= 19 * 300e9

    with pytest.raises(RequestError, match="exists already"):  # before anything is spent
        privatize_file(crm, crm, sql=query, table="private", subject_column="customer", **TEM)
    assert charged() == (state, spent)


def test_a_table_that_cannot_be_written_leaves_what_was_spent_and_nothing_else(outside, crm):
    sql(
        crm,
        "create table private (id int check (id < 15), text text)",
        "insert into private values (3, 'kept')",
    )
    query = "select id, body as text from tickets order by id"
    with pytest.raises(LexveilError, match=r"SQLSTATE 23514.*is unchanged.*stays spent") as caught:
        privatize_file(crm, crm, sql=query, table="private", if_exists="replace", **TEM)
    assert SECRET not in str(caught.value) and "\n" not in str(caught.value)
    assert sql(crm, "select * from private") == [(3, "kept")]
    assert sql(crm, "select to_regclass('lexveil_records') is null") == [(True,)]
    assert not list(outside.iterdir())
    state, spent = charged()
    assert state == ["failed"] and spent > 0


def test_a_table_is_never_without_its_record(outside, crm, monkeypatch):
    """If writing the files fails after the rows are committed, the record is in the database."""

    def full(self):
        raise LexveilError("the disk is full")

    query = "select id, body as text from tickets order by id"
    monkeypatch.setattr(Outputs, "forget", full)
    with pytest.raises(
        LexveilError, match="the table private was written, with its record in the database"
    ):
        privatize_file(crm, crm, sql=query, table="private", **TEM)
    assert sql(crm, "select count(*), (select count(*) from lexveil_records) from private") == [
        (20, 1)
    ]
