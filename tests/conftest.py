"""A small project with everything made: the embedded default data through the real stages, with few dimensions."""

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy: as in the stages that tests compare with

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from lexveil.data.default import write_default_corpus, write_default_documents
from lexveil.privatization.model import CHECKED_BY
from lexveil.runtime.tables import write_json
from tests.shared_trees import build_once, changes, share, stand_beside

ROOT = Path(__file__).parents[1]
SEGMENTATIONS = ("word", "gst", "mst")

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


def _make_built(root: Path) -> None:
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
        for segmentation in SEGMENTATIONS:
            for name in ("segment_corpus", "train_embeddings", "build_neighborhoods", "measure_structure"):
                run_stage(name, segmentation)
        for strategy in ("S1", "S2", "S3", "S4"):
            run_stage("plan_budgets", strategy)
    for check in CHECKED_BY:  # the checks have tests of their own and take seconds to start
        write_json({"success": True}, root / "artifacts" / "checks" / check)


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built project of this worker; only for reading."""
    root = tmp_path_factory.mktemp("shared") / "project"
    shutil.copytree(build_once(tmp_path_factory, "built", _make_built), root)
    share(root)
    return root


@pytest.fixture(scope="session")
def _listed(_built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its lists of words; only for reading."""

    def make_listed(root: Path) -> None:
        shutil.copytree(_built, root, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            for segmentation in SEGMENTATIONS:
                run_stage("build_word_orders", segmentation)

    root = tmp_path_factory.mktemp("shared") / "listed"
    shutil.copytree(build_once(tmp_path_factory, "listed", make_listed), root)
    share(root)
    return root


@pytest.fixture(autouse=True)
def _shared_is_only_read() -> Iterator[None]:
    yield
    changed = changes()
    assert not changed, f"the test wrote into what all tests share (the fixture `project` is a copy): {changed}"


@pytest.fixture
def built(_built: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with everything made, as current folder; artifacts and data are links, for reading."""
    return stand_beside(_built, tmp_path_factory.mktemp("beside"), monkeypatch)


@pytest.fixture
def listed(_listed: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with lists of words."""
    return stand_beside(_listed, tmp_path_factory.mktemp("beside"), monkeypatch)


@pytest.fixture
def project(_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as current folder, to change at will."""
    root = tmp_path / "project"
    shutil.copytree(_built, root)
    monkeypatch.chdir(root)
    return root
