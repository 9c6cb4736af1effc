"""Outputs appear whole or not at all."""

from pathlib import Path

import pytest

from lexveil.runtime.tables import atomic_directory, atomic_file, write_json


def test_a_failed_file_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    with atomic_file(target) as partial:
        partial.write_text("old")
    with pytest.raises(RuntimeError), atomic_file(target) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_directory_leaves_the_old_one(tmp_path: Path) -> None:
    """In the place of what a killed run has left."""
    target = tmp_path / "folder"
    (tmp_path / ".folder.partial/junk").mkdir(parents=True)
    with atomic_directory(target) as partial:
        (partial / "a").write_text("old")
    with pytest.raises(RuntimeError), atomic_directory(target) as partial:
        (partial / "b").write_text("half")
        raise RuntimeError
    assert [file.name for file in target.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [target]


def test_json_bytes_do_not_depend_on_insertion(tmp_path: Path) -> None:
    write_json({"b": 1, "a": "é"}, tmp_path / "one.json")
    write_json({"a": "é", "b": 1}, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
