"""A project of its own for every test: the artifacts that all share, and a ledger in which
something was spent."""

import sys
from pathlib import Path

import numpy as np
import pytest

from lexveil.release.ledger.ledger import Ledger
from tests.shared_trees import stand_beside

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def ready(_built, tmp_path, monkeypatch):
    """The project's folder, as current folder."""
    root = stand_beside(_built, tmp_path / "project", monkeypatch)
    with (
        Ledger.open(root / ".lexveil/ledger", anchor=root / ".ledger-anchor.json") as ledger,
        ledger.begin({}) as release,
    ):
        release.request(["subject:1", "subject:2"], np.full(2, 3.0))
        release.reserve(3.0, None)
        release.spend()
        release.commit()
    return root


@pytest.fixture
def own_figures(monkeypatch, project):
    """Keep the figures about the meaning of an epsilon in the test's own project, because they
    differ from those of all other tests.
    """
    monkeypatch.setattr("lexveil.readers.public_words.WORDS_OF_A_BAND", 300)
    monkeypatch.setattr(
        "lexveil.io.artifacts.project.Project.recovery", project / ".lexveil/recovery"
    )
