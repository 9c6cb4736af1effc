"""A small project with everything made: the embedded default data through the real stages, with few dimensions."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from lexveil.data.default import write_default_corpus, write_default_documents
from lexveil.privatization.model import CHECKED_BY
from lexveil.runtime.tables import write_json

ROOT = Path(__file__).parents[1]

# No test judges by the clock, and none leaves a database of examples behind.
settings.register_profile("project", deadline=None, database=None)
settings.load_profile("project")


def run_stage(name: str, *arguments: str) -> None:
    """Run one stage in this process, in the current folder."""
    module = importlib.import_module(f"tasks.{name}")
    argv = sys.argv
    sys.argv = [name, *arguments]
    try:
        module.main()
    finally:
        sys.argv = argv


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write_default_corpus(root / "data" / "corpus")
    write_default_documents(root / "data" / "documents")
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["embeddings"] |= {"dimensions": 16, "epochs": 2, "min_count": 3}
    params["grid"]["epsilons"] = [1.0, 20.0]
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in ("sample_corpus", "count_ngrams", "build_collocations"):
            run_stage(name)
        for segmentation in ("word", "gst", "mst"):
            for name in ("segment_corpus", "train_embeddings", "build_neighborhoods"):
                run_stage(name, segmentation)
        for strategy in ("S1", "S2", "S3", "S4"):
            run_stage("plan_budgets", strategy)
    for check in CHECKED_BY:  # the checks have tests of their own and take seconds to start
        write_json({"success": True}, root / "artifacts" / "checks" / check)
    return root


@pytest.fixture
def built(_built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder, as current folder; only for reading."""
    monkeypatch.chdir(_built)
    return _built


@pytest.fixture
def project(_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as current folder, to change at will."""
    root = tmp_path / "project"
    shutil.copytree(_built, root)
    monkeypatch.chdir(root)
    return root


@pytest.fixture(scope="module")
def listed(_built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it with its lists, one for each module of tests; not the current folder."""
    root = tmp_path_factory.mktemp("listed") / "project"
    shutil.copytree(_built, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for segmentation in ("word", "gst", "mst"):
            run_stage("build_word_orders", segmentation)
    return root
