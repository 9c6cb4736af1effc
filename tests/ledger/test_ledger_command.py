"""`lexveil ledger`: what it prints, its exit codes, and that it prints no key."""

import json
import os
import shutil
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest
from few_words import asked, edit, spend

from lexveil import Ledger
from tests.tasks.changing import configure

ROOT = Path(__file__).parents[2]
SETTINGS = Path("lexveil.toml")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project with a cap of 2.5, in which ana has spent 2.5 and ben 1, and zoe's release was
    undone."""
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    configure(ledger={"cap": 2.5})
    with opened() as ledger:
        spend(ledger, "ana", "ben", cap=2.5)
        spend(ledger, "ana", budget=1.5, cap=2.5)
        with ledger.begin({}) as release:
            asked(release, "zoe")
    with mock.patch.dict(os.environ):
        yield tmp_path


def opened():
    return Ledger.open(".lexveil/ledger", anchor=".ledger-anchor.json")


def test_show(here, cli):
    assert "ana" not in cli("ledger", "show", "--top", "1").out
    said = json.loads(cli("ledger", "show", "--json", "--top", "5").out)
    assert (said["subjects"], said["exhausted"], said["spent"], said["cap"]) == (2, 1, 3.5, 2.5)
    assert [one["epsilon"] for one in said["top"]] == [2.5, 1.0]
    assert [one["state"] for one in said["releases"]] == ["aborted", "committed", "committed"]


def test_one_subject(here, cli):
    out = cli("ledger", "show", "--subject", " ben\u200b ").out  # however it is written
    assert "1 epsilon spent, 1.5 of 2.5 are left" in out and "ben" not in out
    said = cli("ledger", "show", "--subject", "nobody").out
    assert "0 epsilon spent, 2.5 of 2.5 are left (the ledger has no entry for this subject)" in said


def test_verify(here, cli):
    with opened() as ledger:
        ((name,), *_) = ledger.database.rows("select release from entries where kind = 'reserved'")
    for file, release in (("good.json", name), ("bad.json", "another")):
        (here / file).write_text(json.dumps({"release": {"id": release}}))
    verify = ("ledger", "verify")
    since = ("--since", ".ledger-anchor.json")
    cli(*verify, "--record", "good.json")
    assert (
        "bad.json: its release is not in the chain"
        in cli(*verify, "--record", "good.json", "bad.json", code=1).out
    )
    said = cli(*verify, *since).out
    assert (
        "0 entries, no releases, 0 subjects: no problem was found\ntrusted, not verified: the"
        in said
    )
    edit(Path(".lexveil/ledger"), "update entries set time = '' where seq = 2")
    cli(*verify, *since)
    edit(Path(".lexveil/ledger"), "delete from entries where seq > 8")
    said = cli(*verify, *since, code=1).out
    assert (
        "the ledger was truncated or replaced\nthe verification of the ledger failed\ntrusted"
        in said
    )
    said = json.loads(cli(*verify, "--json", code=1).out)
    assert not said["holds"] and said["problems"][0]["where"] == "entry 2"


@pytest.mark.parametrize("keys", ["hashed", "plain"])
def test_export(here, cli, keys):
    configure(ledger={"folder": keys, "anchor": f"{keys}.json", "keys": keys})
    cli("ledger", "cap", "9", "--because", "before the first release")  # makes the ledger
    with Ledger.open(keys, keys, anchor=f"{keys}.json") as ledger:
        spend(ledger, "ana", budget=1.5)
        spend(ledger, "ana")
    *silent, out = (cli("ledger", "export", name).out for name in ("out.csv", "out.parquet", "-"))
    assert silent == ["", ""] and Path("out.csv").read_text() == out
    header, line = (row.split(",") for row in out.splitlines())
    assert header[:4] == ["subject", "spent_nano", "epsilon", "n_releases"]
    assert line[1:] == ["2500000000", "2.5", "2", *(["ana"] if keys == "plain" else [])]
    assert [str(column[0]) for column in pq.read_table("out.parquet").to_pydict().values()] == line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("export", "out.xlsx"), "must end in .csv or .parquet"),
        (("export", "params.csv"), "exists already"),
        (("verify", "--record", "params.yaml"), "is not the record of a release"),
        (("verify", "--since", "params.yaml"), "is not the anchor of a ledger"),
        (("verify", "--since", "other.json"), "is the anchor of another ledger"),
        (("verify", "--since", "none.json"), "there is no such anchor"),
        (
            ("export", "-"),
            "has no ledger yet; the first release or `lexveil ledger cap` creates it",
        ),
    ],
)
def test_wrong_requests(here, cli, arguments, says):
    """Wrong requests do not create a ledger."""
    (here / "params.csv").write_text("")
    (here / "other.json").write_text('{"entries": 1, "head": "0", "salt": "0"}')
    if "has no ledger" in says:
        configure(ledger={"folder": "elsewhere"})
    assert says in cli("ledger", *arguments, code=2).err and not Path("elsewhere").exists()


@pytest.mark.parametrize(
    "database",
    "postgresql://me:tiger@localhost/crm postgresql://me:tiger/@localhost/crm "
    "PostgreSQL://localhost/?Password=tiger "
    "postgresql://localhost/?pass=tiger postgresql://localhost/?pass%77ord=tiger "
    "password=tiger [://me:tiger@]".split(),
)
def test_a_password_of_the_address_is_never_quoted(here, cli, caplog, database):
    written = database if database.startswith("[") else json.dumps(database)
    SETTINGS.write_text(f"[ledger]\ndatabase = {written}\n")
    Path("in.txt").write_text("a text\n")
    for command in (
        ["ledger", "show"],
        ["ledger", "verify"],
        ["privatize", "in.txt", "-o", "out.txt"],
        ["release"],
    ):
        assert (
            "tiger" not in cli(*command, code=2, told=r"(using the model.*\n)?").err + caplog.text
        )


def test_what_was_put_right_is_said(here, cli):
    with opened() as ledger:
        release = ledger.begin({})
        asked(release, "zoe")
        release._lock.held.release(force=True)  # as its process's end does
        out, err = cli("ledger", "show")
    assert f"release {release.id} was reserved when its process ended; it was aborted" in err
    assert "2 aborted, 2 committed" in out
