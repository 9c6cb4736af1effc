"""A project to bring data into; DVC is played by a function, except where a test says otherwise."""

import sys
from pathlib import Path

import pytest

from lexveil.base.runtime import dvc_graph

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty project whose DVC says yes to everything and writes data.dvc when asked to add."""
    folder = tmp_path / "project"
    (folder / ".dvc").mkdir(parents=True)
    (folder / "dvc.yaml").write_text("stages: {}\n")

    def track(root, paths):
        assert paths == [root / "data"]
        with (folder / "tracked").open("a") as log:
            log.write("data\n")
        (root / "data.dvc").write_text("outs: []\n")

    monkeypatch.setattr(dvc_graph, "track", track)
    monkeypatch.setattr(dvc_graph, "changes_of", lambda root, pointer: set())
    return folder
