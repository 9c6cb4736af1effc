"""data/ before a run, for each state it can be found in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flows.data_bootstrap import ensure_data
from lexveil.base.errors import RequestError
from lexveil.lab.data.data_store import materialize_default


def files():
    return {
        path.as_posix(): path.read_bytes() for path in Path("data").rglob("*") if path.is_file()
    }


@pytest.fixture
def default(project):
    """A data.dvc that names the embedded default, as in a fresh clone: no data/, nothing in the
    cache."""
    materialize_default(Path())
    before = files()
    project.dvc("add", "data")
    shutil.rmtree("data")
    shutil.rmtree(".dvc/cache")
    return before


def write_mine():
    Path("data").mkdir()
    Path("data/mine.txt").write_text("mine")


@pytest.fixture
def cached(project):
    """The copy in DVC's cache of a user's own data, which are absent."""
    write_mine()
    project.dvc("add", "data")
    shutil.rmtree("data")
    (copy,) = (
        file for file in Path(".dvc/cache/files/md5").glob("*/*") if file.read_bytes() == b"mine"
    )
    return copy


def test_a_fresh_clone_gets_the_default_that_data_dvc_names(default):
    pointer = Path("data.dvc").read_bytes()
    ensure_data(print)
    assert files() == default != {}
    assert Path("data.dvc").read_bytes() == pointer
    assert not list(Path(".lexveil").glob("default*"))


def test_without_data_dvc_the_default_is_made_and_tracked(project):
    ensure_data(print)
    assert any(name.startswith("data/corpus/") for name in files())
    assert Path("data.dvc").exists()


def test_data_that_is_there_is_left_alone(default):
    write_mine()
    ensure_data(print)
    assert files() == {"data/mine.txt": b"mine"}


@pytest.mark.parametrize("state", ["whole", "damaged", "gone"])
def test_other_data_come_back_whole_or_not_at_all(cached, state):
    pointer = Path("data.dvc").read_bytes()
    if state == "gone":
        shutil.rmtree(".dvc/cache")
    elif state == "damaged":  # write-protected, so that DVC takes it for whole
        cached.chmod(0o644)
        cached.write_bytes(b"mime")
        cached.chmod(0o444)
    if state == "whole":
        ensure_data(print)
        assert files() == {"data/mine.txt": b"mine"}
        return
    with pytest.raises(RequestError, match="lexveil data"):
        ensure_data(print)
    assert not Path("data").exists() and Path("data.dvc").read_bytes() == pointer
