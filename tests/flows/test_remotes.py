"""Artifacts on another machine: pushed to a remote, pulled into a fresh clone, and used there without any work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scratch_project import Project, run_flow

from lexveil.lineage.trace import lineage
from lexveil.lineage.verify import verify

PRIVATE = Path("artifacts/private/S1/1.0/documents.txt")
pytestmark = pytest.mark.slow


def test_after_a_pull_nothing_runs(
    built: Project, tmp_path: Path, prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built.dvc("remote", "add", "-d", "store", str(tmp_path / "store"))
    built.dvc("push")
    built.commit()
    subprocess.run(["git", "clone", "-q", str(built.root), str(tmp_path / "clone")], check=True)
    monkeypatch.chdir(tmp_path / "clone")
    clone = Project(tmp_path / "clone")
    assert clone.artifacts() == {}
    clone.ran()
    clone.dvc("pull")
    assert clone.artifacts() == built.artifacts() and len(clone.artifacts()) == 7
    done = run_flow(prefect_server)
    assert done.code == 0 and set(done.states.values()) == {"cached"} and clone.ran() == []
    assert clone.git("status", "--porcelain") == ""
    assert verify(PRIVATE)["holds"] and lineage(PRIVATE)["committed"]
