"""Outputs appear whole or not at all; finished parts outlive an interruption, and what spilled does
not."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lexveil.base.errors import LexveilError, ParameterError, RequestError
from lexveil.base.runtime.tables import atomic_directory, atomic_file
from lexveil.io.config import MachineParams
from lexveil.io.execution import checkpoints
from lexveil.io.execution.checkpoints import check_disk, kept_work
from lexveil.io.execution.duckdb_session import SPILL, session


def test_a_failed_file_leaves_the_old_one(tmp_path):
    target = tmp_path / "deep" / "file.txt"
    with atomic_file(target) as partial:
        partial.write_text("old")
    with pytest.raises(RuntimeError), atomic_file(target) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_directory_leaves_the_old_one(tmp_path):
    """The remains of a killed run are replaced as well."""
    target = tmp_path / "folder"
    (tmp_path / ".folder.partial/junk").mkdir(parents=True)
    with atomic_directory(target) as partial:
        (partial / "a").write_text("old")
    with pytest.raises(RuntimeError), atomic_directory(target) as partial:
        (partial / "b").write_text("half")
        raise RuntimeError
    assert [file.name for file in target.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.fixture
def machine(tmp_path):
    return MachineParams(
        memory_limit="1GB", threads=1, workers=1, temp_directory=str(tmp_path / "work")
    )


@pytest.fixture
def source(tmp_path):
    (tmp_path / "input").write_text("a", encoding="utf-8")
    return tmp_path / "input"


def interrupted(machine, source, *settings):
    with (
        pytest.raises(KeyboardInterrupt),
        kept_work(machine, "stage", ["lexveil.core.text"], [source], *settings) as folder,
    ):
        (folder / "part").touch()
        raise KeyboardInterrupt
    return folder


def test_an_interruption_keeps_what_is_finished(machine, source):
    before = interrupted(machine, source, 1)
    with kept_work(machine, "stage", ["lexveil.core.text"], [source], 1) as folder:
        assert folder == before
        assert (folder / "part").exists()
    assert list(Path(machine.temp_directory).iterdir()) == []


@pytest.mark.parametrize("change", ["input", "setting", "code"])
def test_anything_else_finds_nothing(machine, source, change):
    before = interrupted(machine, source, 1)
    if change == "input":
        source.write_text("b", encoding="utf-8")
    code = (
        ["lexveil.core.text", "collocations/bigram_counts"]
        if change == "code"
        else ["lexveil.core.text"]
    )
    with kept_work(machine, "stage", code, [source], 2 if change == "setting" else 1) as folder:
        assert folder != before
        assert list(folder.iterdir()) == []
        assert not before.exists()  # or the work of every try would pile up


def test_a_disk_without_room_is_said_before(tmp_path, capsys):
    with pytest.raises(
        RequestError, match=r"^sorting takes about 1,000,000,000\.0 GB in .* machine.temp_directory"
    ):
        check_disk(tmp_path, 1e18, 1e19, "sorting")
    check_disk(tmp_path, 1, 1e18, "sorting")
    assert capsys.readouterr().err.startswith("caution: sorting takes about 1 bytes")


def test_parts_on_storage_that_is_not_shared_are_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SHOWN", 0.0)
    with pytest.raises(
        RequestError, match=r"is not visible to this process .*machine\.temp_directory"
    ):
        checkpoints.expect_file(tmp_path / "part", "this process")


OURS = f"{SPILL}-{re.sub(r'[^A-Za-z0-9_]', '_', platform.node())}"


def spilling(folder, limit="100MB"):
    return MachineParams(memory_limit=limit, threads=1, workers=1, temp_directory=str(folder))


def test_spill_goes_to_the_folder_of_params_and_away(tmp_path):
    with session(spilling(tmp_path / "deep/work")) as con:
        (where,) = con.execute("select current_setting('temp_directory')").fetchone()
        assert Path(where).parent == tmp_path / "deep/work"
        assert Path(where).name.startswith(f"{OURS}-{os.getpid()}-")
    assert list((tmp_path / "deep/work").iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = (
        f"{OURS}-{gone.pid}-x",
        f"{OURS}-{os.getpid()}-x",
        f"{SPILL}-another-{gone.pid}-x",
        "mine",
    )
    dead, *others = (tmp_path / name for name in names)
    for folder in (dead, *others):
        folder.mkdir()
    with session(spilling(tmp_path)):
        pass
    assert not dead.exists()
    # the machines that share a folder have processes of their own
    assert all(other.exists() for other in others)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    said = pytest.raises(
        ParameterError, match=r"machine\.temp_directory is .*name a writable folder"
    )
    with said, session(spilling(tmp_path / "file/work")):
        pass


def test_room_for_spilled_rows_that_is_full_is_said(tmp_path):
    query = "select i, md5(i::varchar) h from range(3_000_000) t(i) order by h"
    small = spilling(tmp_path / "spill", "40MB")
    with pytest.raises(LexveilError, match=r"machine\.temp_directory"), session(small) as con:
        con.execute("set max_temp_directory_size = '8MB'")
        con.execute(f"copy ({query}) to '{tmp_path / 'sorted.parquet'}'")
    assert list((tmp_path / "spill").iterdir()) == []
