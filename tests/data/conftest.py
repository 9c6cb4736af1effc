"""A project to bring data into; DVC is played by a function, except where a test says otherwise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lexveil.data import data_store

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project whose DVC says yes to everything and writes data.dvc when asked to add."""
    folder = tmp_path / "project"
    (folder / ".dvc").mkdir(parents=True)
    (folder / "dvc.yaml").write_text("stages: {}\n")
    calls = folder / "calls"

    def answer(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        with calls.open("a") as log:
            log.write(json.dumps(arguments) + "\n")
        if arguments[0] == "add":
            (root / "data.dvc").write_text("outs: []\n")
        return subprocess.CompletedProcess(arguments, 0, stdout="{}", stderr="")

    monkeypatch.setattr(data_store, "_dvc", answer)
    return folder
