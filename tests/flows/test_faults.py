"""Faults of stages and caches: the next run ends with the bytes of an undisturbed one.

Kills and refusals of the command are in test_recovery.py, a dvc.lock cut in half in test_build.py, a killed worker,
half-written checkpoints and full disks in tests/runtime.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from scratch_project import Project, RunFlow

pytestmark = pytest.mark.slow


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
