"""Faults of disks, caches and clocks: the next run ends with the bytes of an undisturbed one, or says why not.

Kills and refusals of the command are in test_recovery.py, a dvc.lock cut in half in test_build.py, a killed worker and
half-written checkpoints in tests/runtime.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from scratch_project import ROOT, Project, RunFlow

from lexveil.config import MachineParams
from lexveil.errors import LexveilError
from lexveil.runtime import duckdb_session

pytestmark = pytest.mark.slow

Mount = Callable[..., Path]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mount over a folder, with `mount OPTIONS... FOLDER`; what is still mounted at the end is taken away."""
    mounted: list[Path] = []

    def over(folder: Path, *options: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if "remount" not in ",".join(options):
            mounted.append(folder)
        if subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here")
        return folder

    yield over
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


def small_disk(mount: Mount, folder: Path, megabytes: int = 1) -> None:
    mount(folder, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs")


def overwrite(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change bytes as a failing disk does: mode and times stay."""
    before = file.stat()
    file.chmod(0o644)
    file.write_bytes(change(file.read_bytes()))
    file.chmod(before.st_mode)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_killed_stage_is_said_and_the_next_run_makes_it(built: Project, run: RunFlow, built_template: Path) -> None:
    """Beside locks of a DVC that is dead, which hold nothing up."""
    built.set_params("min_coverage: 0.5", "min_coverage: 0.6")
    built.behave("check die")
    failed = run()
    assert failed.code == 1
    assert failed.error.startswith("check: the stage was killed (signal 9)") and ".lexveil/logs/check" in failed.error
    assert "check speaks" in (built.root / ".lexveil/logs/check.log").read_text()
    assert not (built.root / "artifacts/checks/outputs.json").exists()
    built.behave()
    built.ran()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    entry = {"pid": dead.pid, "cmd": "dvc repro"}
    outs = {str(built.root / name): entry for name in ("artifacts/checks/outputs.json", "artifacts/first.txt")}
    locks = {"write": outs, "read": {path: [entry] for path in outs}}
    (built.root / ".dvc/tmp/rwlock").write_text(json.dumps(locks))
    (built.root / ".dvc/tmp/lock").write_text(f"{dead.pid:>10}\n")
    assert run().code == 0
    assert built.ran() == ["check"]
    assert built.artifacts() == Project(built_template).artifacts()


@pytest.mark.parametrize("folder", ["artifacts", pytest.param(".dvc/cache", marks=pytest.mark.nightly)])
def test_a_full_disk_is_said_and_the_next_run_is_as_if_it_had_not_been(
    project: Project, run: RunFlow, mount: Mount, built_template: Path, folder: str
) -> None:
    """Five outputs of 300 kB and more do not fit into 1 MB, wherever they or DVC's copies of them lie."""
    source = b"x" * 300_000 + b"\n"
    (project.root / "src.txt").write_bytes(source)
    small_disk(mount, project.root / folder)
    failed = run()
    assert failed.code == 1
    assert "No space left on device; free some space" in failed.error and "run again" in failed.error
    mount(project.root / folder, "-o", "remount,size=64m")
    assert run().code == 0
    undisturbed = Project(built_template).artifacts()
    assert project.artifacts() == {name: text.replace(b"source\n", source) for name, text in undisturbed.items()}
    # What DVC kept in its cache is whole, and nothing of what it could not finish is left there.
    kept = [file for file in (project.root / ".dvc/cache/files/md5").rglob("*") if file.is_file()]
    assert kept
    for file in kept:
        assert hashlib.md5(file.read_bytes()).hexdigest() == file.parent.name + file.name.removesuffix(".dir")


def test_room_for_spilled_rows_that_is_full_is_said(tmp_path: Path, mount: Mount) -> None:
    small_disk(mount, tmp_path / "spill", 8)
    machine = MachineParams(memory_limit="40MB", threads=1, workers=1, temp_directory=str(tmp_path / "spill"))
    query = "select i, md5(i::varchar) h from range(3_000_000) t(i) order by h"
    with pytest.raises(LexveilError, match=r"machine\.temp_directory"), duckdb_session.session(machine) as con:
        con.execute(f"copy ({query}) to '{tmp_path / 'sorted.parquet'}'")
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_project_on_a_full_disk_is_one_line(project: Project, mount: Mount) -> None:
    elsewhere = project.root.with_name("elsewhere")
    small_disk(mount, elsewhere)
    shutil.copytree(project.root, elsewhere, dirs_exist_ok=True, symlinks=True)
    with pytest.raises(OSError, match="No space left"), (elsewhere / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    command = [sys.executable, "-m", "lexveil.cli", "run"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("lexveil run: ") and "run again" in done.stderr


def test_a_damaged_cache_is_never_given_back(built: Project, run: RunFlow, built_template: Path) -> None:
    """Files and lists of a folder's files; all write-protected, so that DVC takes them for whole."""
    entries = yaml.safe_load(built.lock())["stages"].values()
    hashes = {out["path"]: out["md5"] for entry in entries for out in entry["outs"]}
    copies = {path: built.root / ".dvc/cache/files/md5" / md5[:2] / md5[2:] for path, md5 in hashes.items()}
    assert {copy.stat().st_mode & 0o777 for copy in copies.values()} == {0o444}
    overwrite(copies["artifacts/first.txt"], lambda content: b"S" + content[1:])
    overwrite(copies["artifacts/counts/a.txt"], lambda content: content[: len(content) // 2])
    copies["artifacts/counts/b.txt"].unlink()
    overwrite(copies["artifacts/private/S1/1.0"], lambda content: content.replace(b"documents", b"dokuments"))
    overwrite(copies["artifacts/private/S2/1.0"], lambda content: content[: len(content) // 2])
    left = [copies["artifacts/first.txt"].with_name(".aB_c-d.tmp"), built.root / "artifacts/counts/.aB_c-d.tmp"]
    for file in left:
        file.write_text("half")
    shutil.rmtree(built.root / "artifacts/private")
    for name in ("first.txt", "counts/a.txt", "counts/b.txt"):
        (built.root / "artifacts" / name).unlink()
    assert run().code == 0
    assert sorted(built.ran()) == ["count@a", "count@b", "first", "privatize@S1-1.0", "privatize@S2-1.0"]
    undisturbed = Project(built_template)
    assert (built.artifacts(), built.lock()) == (undisturbed.artifacts(), undisturbed.lock())
    assert not any(file.exists() for file in left)
