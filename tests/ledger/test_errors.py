"""What can be wrong with the folder: each is said in words, and what to do."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

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


def content(name: str, new: bytes) -> Callable[[Path], object]:
    return lambda used: (used / name).write_bytes(new)


def missing(name: str) -> Callable[[Path], object]:
    return lambda used: (used / name).unlink()


def cut(used: Path) -> None:
    file = used / "ledger.sqlite"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def sql(statement: str, anew: bool = False) -> Callable[[Path], None]:
    def change(used: Path) -> None:
        if anew:
            (used / "ledger.sqlite").unlink()
        con = sqlite3.connect(used / "ledger.sqlite")
        con.execute(statement)
        con.commit()
        con.close()

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (content("ledger.sqlite", b"not a database, and long enough to have a header " * 100), "is not a ledger"),
        (content("ledger.sqlite", b"x" * 10), "is not a ledger"),
        (content("ledger.sqlite", b""), "no ledger of Lexveil"),
        (sql("create table entries (seq)", anew=True), "no ledger of Lexveil"),
        (sql("pragma user_version = 1"), "written by another Lexveil"),
        (cut, "is damaged"),
        (missing("salt"), "salt is missing or not whole: bring it back from your copy"),
        (content("salt", b"short"), "salt is missing or not whole"),
        (content("salt", bytes(32)), "is not the salt of"),
        (missing("ledger.sqlite"), "is gone, but its salt is there"),
        (sql("update meta set value = '2' where name = 'keys_rule'"), "knows subjects by another rule"),
    ],
)
def test_what_is_damaged_or_missing_is_refused_and_never_made_anew(used: Path, change, says: str) -> None:
    change(used)
    before = {path.name: path.read_bytes() for path in used.iterdir() if path.is_file()}
    with pytest.raises(RequestError, match=says), Ledger.open(used) as ledger:
        spend(ledger, "ana")
    assert {path.name: path.read_bytes() for path in used.iterdir() if path.is_file()} == before


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
        for _ in range(2):
            with pytest.raises(RequestError, match="must be writable"), Ledger.open(folder) as ledger:
                spend(ledger, "ana")
            (folder / "locks").chmod(0o700)
        assert verify(folder).holds
        with pytest.raises(RequestError, match="cannot be made"):
            Ledger.open(folder / "inner")
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("limit", ["main", "temp"])
def test_a_full_disk(used: Path, limit: str) -> None:
    """Of the ledger while it reserves, and of temporary files before."""
    with Ledger.open(used) as ledger:
        ((pages,),) = ledger.database.rows("pragma page_count")
        with pytest.raises(RequestError, match="the disk is full; nothing was changed"), ledger.begin({}) as release:
            ledger.database.rows(f"pragma {limit}.max_page_count = {pages if limit == 'main' else 2}")
            asked(release, *(f"s{n}" for n in range(5000)))
        ledger.database.rows("pragma main.max_page_count = 1000000")
    with Ledger.open(used) as ledger:
        assert states(ledger) == ["committed", "aborted"]
        assert balance(ledger, "ana") == 10**9 and balance(ledger, "s1") == 0
    assert verify(used).holds


def test_another_process_that_does_not_let_go(
    used: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that writes; one that only reads makes writers wait."""
    other = sqlite3.connect(used / "ledger.sqlite", isolation_level=None)
    other.execute("begin exclusive")
    monkeypatch.setattr(database, "TRY", 0.05)
    with pytest.raises(RequestError, match=r"held the ledger for more than 0\.1 s"):
        Ledger.open(used, patience=0.1)
    assert capsys.readouterr().err.count("waiting for another process") == 1
    with pytest.raises(RequestError, match="held the ledger"):
        verify(used, patience=0.1)
    other.execute("rollback")
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
    sql("update entries set previous = null where seq = (select max(seq) from entries)")(used)
    with Ledger.open(used, anchor=tmp_path / "anchor") as ledger:
        assert ledger.refusal is not None and "was changed" in ledger.refusal
