"""The main job: a clone, one command, and outputs that are those of dvc.lock."""

import subprocess
from pathlib import Path

import pytest


@pytest.mark.nightly
def test_all_of_the_graph_gives_what_dvc_lock_has(tmp_path):
    """This test is nightly; by day, .ci/run checks that dvc.lock matches the code."""
    subprocess.run([Path(__file__).parents[1] / ".ci/graph", tmp_path / "clone"], check=True)
