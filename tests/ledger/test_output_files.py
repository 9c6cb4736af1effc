"""Files get their names durably and in order, and folders too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from few_words import asked, sha

from lexveil.ledger import output_files
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.output_files import make_folder, roll_forward, stored


def test_files_appear_in_the_order_in_which_they_are_written(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record goes before its text, whatever they are called, and its name is on the disk before the text has one."""
    names = ["b.record", "a.text"]
    done: list[str] = []
    replace, sync = os.replace, output_files.sync
    with ledger.begin({}, [tmp_path / f".{name}" for name in names]) as release:
        asked(release, "ana")
        release.spend()
        for name in names:
            (tmp_path / f".{name}").write_text(name)
        release.written([(tmp_path / f".{name}", tmp_path / name, sha(name)) for name in names])
        monkeypatch.setattr(os, "replace", lambda *paths: (done.append(paths[1].name), replace(*paths)))
        monkeypatch.setattr(output_files, "sync", lambda path: (done.append("sync"), sync(path)))
        release.publish()
        assert done[:4] == ["b.record", "sync", "a.text", "sync"]
        # As recovery would do it again.
        assert [file.final for file in stored(ledger.database.con, 1)] == [tmp_path / name for name in names]
        assert roll_forward(stored(ledger.database.con, 1), trusted=False) == []


def test_a_new_folder_is_synced_into_those_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut takes it, and a ledger with it whose outputs are out already."""
    synced: list[Path] = []
    monkeypatch.setattr(output_files, "sync", synced.append)
    assert make_folder(tmp_path / "one" / "two", mode=0o700) == [tmp_path / "one", tmp_path / "one" / "two"]
    assert {tmp_path, tmp_path / "one"} <= set(synced)
    assert (tmp_path / "one" / "two").stat().st_mode & 0o777 == 0o700
    with Ledger.open(tmp_path / "kept" / "ledger"):
        assert {tmp_path, tmp_path / "kept"} <= set(synced)
