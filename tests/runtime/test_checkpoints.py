"""Finished parts outlive an interruption and nothing else; the disk is looked at before."""

from pathlib import Path

import pytest

from lexveil.config import MachineParams
from lexveil.errors import RequestError
from lexveil.runtime import checkpoints
from lexveil.runtime.checkpoints import check_disk, kept_work


@pytest.fixture
def machine(tmp_path: Path) -> MachineParams:
    return MachineParams(memory_limit="1GB", threads=1, workers=1, temp_directory=str(tmp_path / "work"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "input").write_text("a", encoding="utf-8")
    return tmp_path / "input"


def interrupted(machine: MachineParams, source: Path, *settings: object) -> Path:
    with pytest.raises(KeyboardInterrupt), kept_work(machine, "stage", ["lexveil.text"], [source], *settings) as folder:
        (folder / "part").touch()
        raise KeyboardInterrupt
    return folder


def test_an_interruption_keeps_what_is_finished(machine: MachineParams, source: Path) -> None:
    before = interrupted(machine, source, 1)
    with kept_work(machine, "stage", ["lexveil.text"], [source], 1) as folder:
        assert folder == before
        assert (folder / "part").exists()
    assert list(Path(machine.temp_directory).iterdir()) == []


@pytest.mark.parametrize("change", ["input", "setting", "code"])
def test_anything_else_finds_nothing(machine: MachineParams, source: Path, change: str) -> None:
    before = interrupted(machine, source, 1)
    if change == "input":
        source.write_text("b", encoding="utf-8")
    code = ["lexveil.text", "collocations/bigram_counts"] if change == "code" else ["lexveil.text"]
    with kept_work(machine, "stage", code, [source], 2 if change == "setting" else 1) as folder:
        assert folder != before
        assert list(folder.iterdir()) == []
        assert not before.exists()  # or the work of every try would pile up


def test_a_disk_without_room_is_said_before(tmp_path: Path, capsys) -> None:
    with pytest.raises(RequestError, match=r"^sorting takes about 1,000,000,000\.0 GB in .* machine.temp_directory"):
        check_disk(tmp_path, 1e18, 1e19, "sorting")
    check_disk(tmp_path, 1, 1e18, "sorting")
    assert capsys.readouterr().out.startswith("caution: sorting takes about 1 bytes")


def test_parts_on_storage_that_is_not_shared_are_missed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "SHOWN", 0.0)
    with pytest.raises(RequestError, match=r"cannot be seen by this process .*machine\.temp_directory"):
        checkpoints.expect_file(tmp_path / "part", "this process")
