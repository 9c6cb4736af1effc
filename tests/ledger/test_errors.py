"""Errors about the ledger's folder: each has a message in words, with advice."""

import os
import sqlite3
from contextlib import closing

import pytest
from few_words import asked, balance, edit, spend, states, write

from lexveil import Ledger, RequestError
from lexveil.release.ledger import database, output_files
from lexveil.release.ledger.verification import verify


@pytest.fixture
def used(folder):
    with Ledger.open(folder) as ledger:
        spend(ledger, "ana")
    return folder


def overwrite(used, name, content):
    (used / name).write_bytes(content)


def another(used):
    (used / "ledger.sqlite").unlink()
    edit(used, "create table entries (seq)")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda used: overwrite(used, "ledger.sqlite", b"not a database, and not short " * 200),
            "is not a ledger",
        ),
        (lambda used: overwrite(used, "ledger.sqlite", b""), "not a ledger of Lexveil"),
        (another, "not a ledger of Lexveil"),
        (
            lambda used: edit(used, "pragma user_version = 1"),
            "another version of Lexveil wrote the ledger",
        ),
        (
            lambda used: os.truncate(
                used / "ledger.sqlite", (used / "ledger.sqlite").stat().st_size // 2
            ),
            "is damaged",
        ),
        (
            lambda used: (used / "salt").unlink(),
            "salt is missing or incomplete; restore it from your copy",
        ),
        (lambda used: overwrite(used, "salt", b"short"), "salt is missing or incomplete"),
        (lambda used: overwrite(used, "salt", bytes(32)), "is not the salt of"),
        (lambda used: (used / "ledger.sqlite").unlink(), "is missing, but its salt exists"),
        (
            lambda used: edit(used, "update meta set value = '2' where name = 'keys_rule'"),
            "subjects by an older rule",
        ),
    ],
)
def test_what_is_damaged_or_missing_is_refused_and_never_made_anew(used, change, says):
    change(used)
    before = {path.name: path.read_bytes() for path in used.iterdir() if path.is_file()}
    with pytest.raises(RequestError, match=says), Ledger.open(used) as ledger:
        spend(ledger, "ana")
    assert {path.name: path.read_bytes() for path in used.iterdir() if path.is_file()} == before


def test_a_file_in_place_of_the_folder(folder):
    folder.write_text("x")
    with pytest.raises(RequestError, match="cannot be created"):
        Ledger.open(folder)


@pytest.mark.parametrize("limit", ["main", "temp"])
def test_a_full_disk(used, limit):
    """The disk of the ledger fills up during the reservation, or the disk of temporary files before
    it.
    """
    with Ledger.open(used) as ledger:
        ((pages,),) = ledger.database.rows("pragma page_count")
        with (
            pytest.raises(RequestError, match="the disk is full and nothing was changed"),
            ledger.begin({}) as release,
        ):
            ledger.database.rows(
                f"pragma {limit}.max_page_count = {pages if limit == 'main' else 2}"
            )
            asked(release, *(f"s{n}" for n in range(5000)))
        ledger.database.rows("pragma main.max_page_count = 1000000")
    with Ledger.open(used) as ledger:
        assert states(ledger) == ["committed", "aborted"]
        assert balance(ledger, "ana") == 10**9 and balance(ledger, "s1") == 0
    assert verify(used).holds


@pytest.mark.parametrize(
    ("then", "becomes"), [("publish", "committed"), ("abort", "aborted"), ("die", "committed")]
)
def test_the_files_of_a_release_are_waited_for(used, tmp_path, monkeypatch, then, becomes):
    """While another process holds the ledger, which lets go when it is first waited for."""
    monkeypatch.setattr(database, "TRY", 0.05)
    with closing(sqlite3.connect(used / "ledger.sqlite", isolation_level=None)) as other:
        reads = output_files.text  # of the second query on the files of a release

        def held(name):
            if name == "ledger/written":
                other.execute("begin exclusive")
            return reads(name)

        monkeypatch.setattr(database.LOG, "info", lambda *_: other.execute("rollback"))
        with Ledger.open(used) as ledger, ledger.begin({}, [tmp_path / ".f"]) as release:
            asked(release, "ben")
            if then == "abort":
                monkeypatch.setattr(output_files, "text", held)
                release.abort()
            else:
                write(release, tmp_path, "f")
                monkeypatch.setattr(output_files, "text", held)
                release.publish() if then == "publish" else release._lock.release(remove=False)
        with Ledger.open(used) as ledger:
            assert [one.now for one in ledger.recovered] == [becomes] * (then == "die")
            assert states(ledger) == ["committed", becomes]


def test_another_process_that_does_not_let_go(used, monkeypatch):
    """The other process writes, or it reads, which makes writers wait."""
    monkeypatch.setattr(database, "TRY", 0.05)
    with closing(sqlite3.connect(used / "ledger.sqlite", isolation_level=None)) as other:
        other.execute("begin exclusive")
        for waits in (Ledger.open, verify):
            with pytest.raises(RequestError, match=r"held the ledger for more than 0\.1 s"):
                waits(used, patience=0.1)
        other.execute("rollback")
        with Ledger.open(used, patience=0.1) as ledger:
            other.execute("begin")
            other.execute("select * from entries").fetchone()
            with pytest.raises(RequestError, match="held the ledger"):
                spend(ledger, "ben")
            other.execute("rollback")
            assert spend(ledger, "ben").n_withheld == 0
