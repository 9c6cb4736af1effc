"""The main job: a clone, one command, and outputs that are those of dvc.lock."""

import subprocess
from pathlib import Path

import pytest


@pytest.mark.nightly
def test_all_of_the_graph_gives_what_dvc_lock_has(tmp_path: Path) -> None:
    """By day, .ci/run makes what one run of the grid needs."""
    graph = Path(__file__).parents[1] / ".ci/graph"
    done = subprocess.run([graph, tmp_path / "clone"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
