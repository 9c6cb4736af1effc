"""What can be wrong with the folder: each is said in words, and what to do."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from few_words import asked, balance, spend, states

from lexveil.errors import RequestError
from lexveil.ledger import database
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.verification import verify


@pytest.fixture
def used(folder: Path) -> Path:
    with Ledger.open(folder) as ledger:
        spend(ledger, "ana")
    return folder


@pytest.mark.parametrize("content", [b"not a database, and long enough to have a header " * 100, b"x" * 10])
def test_no_database(used: Path, content: bytes) -> None:
    (used / "ledger.sqlite").write_bytes(content)
    for look in (Ledger.open, verify):
        with pytest.raises(RequestError, match="is not a ledger"):
            look(used)


def test_another_programs_database(used: Path) -> None:
    (used / "ledger.sqlite").unlink()
    con = sqlite3.connect(used / "ledger.sqlite")
    con.execute("create table entries (seq)")
    con.close()
    for look in (Ledger.open, verify):
        with pytest.raises(RequestError, match="no ledger of Lexveil"):
            look(used)


def test_an_empty_file(used: Path) -> None:
    (used / "ledger.sqlite").write_bytes(b"")
    with pytest.raises(RequestError, match="no ledger of Lexveil"):
        Ledger.open(used)


def test_another_form(used: Path) -> None:
    con = sqlite3.connect(used / "ledger.sqlite")
    con.execute("pragma user_version = 1")
    con.close()
    with pytest.raises(RequestError, match="written by another Lexveil"):
        Ledger.open(used)


def test_a_cut_database(used: Path) -> None:
    content = (used / "ledger.sqlite").read_bytes()
    (used / "ledger.sqlite").write_bytes(content[: len(content) // 2])
    with pytest.raises(RequestError, match="is damaged"), Ledger.open(used) as ledger:
        spend(ledger, "ana")


@pytest.mark.parametrize("content", [None, b"short"])
def test_a_missing_salt_is_never_made_anew(used: Path, content: bytes | None) -> None:
    (used / "salt").unlink()
    if content:
        (used / "salt").write_bytes(content)
    with pytest.raises(RequestError, match=r"salt is missing or not whole: bring it back from your copy"):
        Ledger.open(used)


def test_another_salt(used: Path) -> None:
    (used / "salt").write_bytes(bytes(32))
    with pytest.raises(RequestError, match="is not the salt of"):
        Ledger.open(used)


def test_a_missing_database_is_never_made_anew(used: Path) -> None:
    (used / "ledger.sqlite").unlink()
    with pytest.raises(RequestError, match="is gone, but its salt is there"):
        Ledger.open(used)
    assert not (used / "ledger.sqlite").exists()


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("x")
    with pytest.raises(RequestError, match="cannot be made"):
        Ledger.open(tmp_path / "ledger")


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder for a user who is not root, whom permissions would not stop; only while the test calls it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        root = os.geteuid() == 0
        if root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)


def test_a_read_only_folder(nobody: Path) -> None:
    folder = nobody / "ledger"
    with Ledger.open(folder) as ledger:
        spend(ledger, "ana")
    for path in (folder / "locks", folder):
        path.chmod(0o500)
    try:
        with pytest.raises(RequestError, match="must be writable"), Ledger.open(folder) as ledger:
            spend(ledger, "ana")
        (folder / "locks").chmod(0o700)
        with pytest.raises(RequestError, match="must be writable"), Ledger.open(folder) as ledger:
            spend(ledger, "ana")
        assert verify(folder).holds
        with pytest.raises(RequestError, match="cannot be made"):
            Ledger.open(folder / "inner")
    finally:
        folder.chmod(0o700)


def test_a_full_disk_while_reserving(used: Path) -> None:
    with Ledger.open(used) as ledger:
        (pages,) = ledger.database.rows("pragma page_count")[0]
        with pytest.raises(RequestError, match="the disk is full; nothing was changed"), ledger.begin({}) as release:
            ledger.database.rows(f"pragma max_page_count = {pages}")
            asked(release, *(f"s{n}" for n in range(5000)))
        ledger.database.rows("pragma max_page_count = 1000000")
    with Ledger.open(used) as ledger:
        assert states(ledger) == ["committed", "aborted"]
        assert balance(ledger, "ana") == 10**9 and balance(ledger, "s1") == 0
    assert verify(used).holds


def test_a_full_disk_while_asking(used: Path) -> None:
    said = pytest.raises(RequestError, match=r"the disk is full")
    with Ledger.open(used) as ledger, said, ledger.begin({}) as release:
        ledger.database.rows("pragma temp.max_page_count = 2")
        release.request([f"s{n}" for n in range(5000)], np.ones(5000))
    assert verify(used).releases == {"committed": 1, "aborted": 1}


def test_another_process_that_does_not_let_go(
    used: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = sqlite3.connect(used / "ledger.sqlite", isolation_level=None)
    other.execute("begin exclusive")
    monkeypatch.setattr(database, "TRY", 0.05)
    try:
        with pytest.raises(RequestError, match=r"held the ledger for more than 0\.1 s"):
            Ledger.open(used, patience=0.1)
        assert capsys.readouterr().err.count("waiting for another process") == 1
        with pytest.raises(RequestError, match="held the ledger"):
            verify(used, patience=0.1)
    finally:
        other.close()
    Ledger.open(used, patience=0.1).close()


def test_who_only_reads_makes_writers_wait_and_not_fail(used: Path) -> None:
    other = sqlite3.connect(used / "ledger.sqlite", isolation_level=None)
    with Ledger.open(used, patience=0.1) as ledger:
        other.execute("begin")
        other.execute("select * from entries").fetchone()
        with pytest.raises(RequestError, match="held the ledger"):
            spend(ledger, "ben")
        other.close()
        assert spend(ledger, "ben").n_withheld == 0


def test_an_entry_of_a_damaged_disk(used: Path, tmp_path: Path) -> None:
    """An index that outlives its rows gives entries of nothing: the chain was changed, and that is said."""
    with Ledger.open(used, anchor=tmp_path / "anchor") as ledger:
        con = ledger.database.con
        con.execute("pragma writable_schema = on")
        con.execute("update sqlite_master set sql = replace(sql, ' not null', '') where name = 'entries'")
    con = sqlite3.connect(used / "ledger.sqlite")
    con.execute("update entries set previous = null where seq = (select max(seq) from entries)")
    con.commit()
    con.close()
    with Ledger.open(used, anchor=tmp_path / "anchor") as ledger:
        assert ledger.refusal is not None and "was changed" in ledger.refusal
