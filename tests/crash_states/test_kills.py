"""Whole releases that are killed at any moment of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(*command: str) -> str:
    """What a command prints, in the current folder: a process without threads, from which it forks."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(("runs", "verbs"), [(14, ["privatize"]), (1000, [])], ids=["few", "many"])
def test_whole_releases_killed_at_any_moment(built: Path, tmp_path: Path, runs: int, verbs: list[str]) -> None:
    killing = json.loads(run("-m", "tests.crash_states.kills", str(runs), str(tmp_path), "7", *verbs))
    assert killing["violations"] == [] and killing["refusals"] == {}
    assert killing["killed"] == runs and (runs < 100 or len(killing["states"]) > 5)


@pytest.mark.nightly
def test_the_harness_can_fail(built: Path, tmp_path: Path) -> None:
    """Where what subjects have spent is not remembered, it says so."""
    code = """if True:
        import sys
        from pathlib import Path
        from tests.crash_states.kills import run
        from lexveil.ledger import balances
        balances.charge = lambda *_: None
        print(len(run(2, Path.cwd(), Path(sys.argv[1]), 3, ("privatize",)).found.violations))
    """
    assert int(run("-c", code, str(tmp_path))) > 0
