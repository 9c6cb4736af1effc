"""Addresses name a database and hold no password; nothing of one is quoted."""

import pytest

from lexveil.base.errors import RequestError
from lexveil.io.databases.address import is_address, read_address
from lexveil.io.databases.base import quotable, stripped
from lexveil.io.databases.table import DatabaseTable


def test_addresses_as_libpq_has_them():
    for text in (
        "postgres:///crm?host=/run/postgresql&sslmode=require",
        "postgresql://me@[::1]:5432/crm",
    ):
        assert is_address(text) and read_address(text).engine == "postgresql"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:tiger@localhost/crm",
        "postgresql://localhost/crm?password=tiger",
        "postgresql://localhost/crm?sslpassword=tiger",
        "postgresql://localhost/crm#?password=tiger",
        "PostgreSQL://me:tiger@localhost/crm",
        "postgresql://me:tiger#@localhost/crm",
        "postgresql://me:tiger%40@localhost:notaport/crm",
        "postgresql://localhost/crm?passwd=tiger",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_quoted(text, cli):
    with pytest.raises(RequestError) as caught:
        read_address(text)
    assert "tiger" not in str(caught.value)
    assert "tiger" not in cli("inspect", text, "--sql", "select 1", code=2).err


def test_a_path_of_sqlite_is_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_address("sqlite:///crm.db").path == tmp_path / "crm.db"
    assert read_address(f"sqlite:///{tmp_path}/crm.db").path == tmp_path / "crm.db"
    (tmp_path / "crm.db").touch()
    with pytest.raises(RequestError, match="four slashes"):
        read_address(f"sqlite://{tmp_path}/crm.db")
    for text in ("sqlite://crm.db", "sqlite:///", "mysql://localhost/crm"):
        with pytest.raises(RequestError):
            read_address(text)


def test_only_what_the_query_says_is_quoted():
    said = "invalid \"t\" of 'Jane Doe'\nLINE 1: select 'Jane Doe'"
    assert quotable(said, "select * from t") == 'invalid "t" of (not shown)'
    assert stripped(" select 1 ; ") == "select 1"


@pytest.mark.parametrize("name", ["a;drop", 'a"', "a.b.c", "1a", "", "a" * 64])
def test_names_of_tables_are_names(name):
    with pytest.raises(RequestError, match="table: write TABLE"):
        DatabaseTable.named(read_address("postgresql://localhost/crm"), name)
