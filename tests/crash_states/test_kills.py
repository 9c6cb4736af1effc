"""Whole releases that are killed: a few of those of `python -m benchmarks.kills`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """In the current folder, with the benchmarks of this repository."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


def test_whole_releases_killed_at_any_moment(built: Path, tmp_path: Path) -> None:
    done = run("-m", "benchmarks.kills", "--runs", "14", "--folder", str(tmp_path), "--verbs", "privatize")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 killed" in done.stdout and "\n0 violations" in done.stdout and "refused" not in done.stdout


def test_the_harness_can_fail(built: Path, tmp_path: Path) -> None:
    """Where what subjects have spent is not remembered, it says so."""
    code = """if True:
        import sys
        from pathlib import Path
        from benchmarks.kills import run
        from lexveil.ledger import balances
        balances.charge = lambda *_: None
        print(len(run(2, Path.cwd(), Path(sys.argv[1]), 3, ("privatize",)).found.violations))
    """
    assert int(run("-c", code, str(tmp_path)).stdout) > 0
