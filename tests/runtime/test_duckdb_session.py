"""DuckDB sessions: where they spill, and what a killed one leaves behind."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lexveil.config import MachineParams
from lexveil.errors import LexveilError, ParameterError
from lexveil.runtime.duckdb_session import SPILL, session

OURS = f"{SPILL}-{re.sub(r'[^A-Za-z0-9_]', '_', platform.node())}"


def machine(folder: Path, limit: str = "100MB") -> MachineParams:
    return MachineParams(memory_limit=limit, threads=1, workers=1, temp_directory=str(folder))


def test_spill_goes_to_the_folder_of_params_and_away(tmp_path: Path) -> None:
    with session(machine(tmp_path / "deep/work")) as con:
        (where,) = con.execute("select current_setting('temp_directory')").fetchone()
        assert Path(where).parent == tmp_path / "deep/work"
        assert Path(where).name.startswith(f"{OURS}-{os.getpid()}-")
    assert list((tmp_path / "deep/work").iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = (f"{OURS}-{gone.pid}-x", f"{OURS}-{os.getpid()}-x", f"{SPILL}-another-{gone.pid}-x", "mine")
    dead, *others = (tmp_path / name for name in names)
    for folder in (dead, *others):
        folder.mkdir()
    with session(machine(tmp_path)):
        pass
    assert not dead.exists()
    assert all(other.exists() for other in others)  # the machines that share a folder have processes of their own


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = pytest.raises(ParameterError, match=r"machine\.temp_directory is .*name a folder")
    with said, session(machine(tmp_path / "file/work")):
        pass


def test_room_for_spilled_rows_that_is_full_is_said(tmp_path: Path) -> None:
    query = "select i, md5(i::varchar) h from range(3_000_000) t(i) order by h"
    small = machine(tmp_path / "spill", "40MB")
    with pytest.raises(LexveilError, match=r"machine\.temp_directory"), session(small) as con:
        con.execute("set max_temp_directory_size = '8MB'")
        con.execute(f"copy ({query}) to '{tmp_path / 'sorted.parquet'}'")
    assert list((tmp_path / "spill").iterdir()) == []
