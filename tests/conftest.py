"""A small project with everything made: the embedded default data through the real stages, with few
dimensions."""

import os

# before NumPy, as in the stages that tests compare with
import lexveil.base.runtime.blas  # isort: skip  # noqa: F401
from lexveil.base.runtime.project import ONE_THREAD

# Tests run side by side: threads of matrix products would wait for each other, and take a third
# more processor time.
os.environ |= ONE_THREAD

import gc
import importlib
import logging
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import yaml
from hypothesis import settings

from lexveil import MECHANISMS
from lexveil.base import paths
from lexveil.base.logs import messages_on_stderr
from lexveil.base.runtime.tables import read_json, write_json
from lexveil.base.runtime.telemetry import turn_telemetry_off
from lexveil.io.artifacts.collocation_tables import load_collocations
from lexveil.io.artifacts.embeddings import load_bigrams, load_embedding
from lexveil.io.artifacts.model_source import CHECKED_BY
from lexveil.io.artifacts.packaged_model import (
    ModelContent,
    PackagedModel,
    add_bigrams,
    write_packaged,
)
from lexveil.io.artifacts.structure import MeasuredStructure
from lexveil.lab.data.default import write_default_corpus, write_small_documents
from lexveil.release.engine import engine
from lexveil.release.ledger import database
from tests.asking import command
from tests.shared_trees import build_once, changes, share, stand_beside

turn_telemetry_off()

# A worker of pytest-xdist has a main module of no file, which PySpark, where it is installed, takes
# for doctests: it would end the process when Great Expectations looks for it.
if sys.modules["__main__"].__spec__ is None:
    sys.modules["__main__"].__spec__ = SimpleNamespace(name=None)

ROOT = Path(__file__).parents[1]
SEGMENTATIONS = ("word", "gst", "mst")

# No test judges by the clock, and none leaves a database of examples behind. The nightly searches
# try more of them (.ci/nightly).
settings.register_profile("project", deadline=None, database=None, max_examples=50)
settings.register_profile("nightly", settings.get_profile("project"), max_examples=1000)
settings.load_profile("project")


# Imports leave no garbage, and to look for it takes a third of the time of collecting tests.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    """Look for garbage from now on, but not among what was imported."""
    gc.enable()
    gc.freeze()


def pytest_sessionfinish():
    """Collect garbage at the end of the process as it is collected without tests."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files by file, and those that want a Prefect server in one worker: a server costs more than
    most files.

    The longest come first and then all slow ones, so that no worker is left alone with one at the
    end.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    asking = re.compile(r"def \w+\(.*\b(prefect_server|run)\b.*\)")
    served = {
        file.name
        for file in (ROOT / "tests/flows").glob("test_*.py")
        if asking.search(file.read_text())
    }

    slow = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("test_*.py")
        if "pytest.mark.slow" in file.read_text()
    }
    first = ("tests/mutations/test_mutations.py", "with a Prefect server")

    class OneServer(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "with a Prefect server" if file.rpartition("/")[2] in served else file

        def _assign_work_unit(self, node):
            waiting = [scope for scope in self.workqueue if scope in slow][:1]
            for scope in (*waiting, *(scope for scope in first if scope in self.workqueue)):
                self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return OneServer(config, log)


def run_stage(name, *arguments):
    """Run one stage in this process, in the current folder."""
    module = importlib.import_module(f"tasks.{name}")
    argv = sys.argv
    sys.argv = [name, *arguments]
    try:
        module.main()
    finally:
        sys.argv = argv


def write_toy_model(folder, name, project):
    """Package the gst embedding of a project; its orders, which may be any, follow its first two
    coordinates."""
    space = load_embedding("gst", project)
    collocations = load_collocations(project)
    words = [token.split("_") for token in space.tokens]
    offsets = np.cumsum([0, *map(len, words)])
    pairs, triples = collocations.scores(
        collocations.ids(word for token in words for word in token), offsets
    )
    bits = {1: np.zeros(len(words)), 2: pairs[offsets[:-1]], 3: triples[offsets[:-1]]}
    pmi = np.array([bits[len(token)][row] for row, token in enumerate(words)])
    vectors = np.asarray(space.vectors)
    single = np.array([len(token) == 1 for token in words])
    length = read_json(project / paths.CORPUS_LENGTH, "sample_corpus")
    structure = {
        one: read_json(project / paths.structure(one), "measure_structure") for one in SEGMENTATIONS
    }
    card = {"name": name, "version": "1.0", "language": "en", "license": "CC0-1.0"}
    card |= {
        "description": "a toy",
        "built": "2026-11-22",
        "sources": [],
        "cleaning": [],
        "known_faults": [],
    }
    card |= {field: {} for field in ("dropped", "parameters", "made_with", "quality")}
    card["average_words"] = length["n_words"] / length["n_documents"]
    of_kind = {"word": vectors[single], "all": vectors}
    orders = {kind: np.argsort(some[:, :2].T).astype(np.int32) for kind, some in of_kind.items()}
    measured = {one: MeasuredStructure.model_validate(of_one) for one, of_one in structure.items()}
    write_packaged(folder, card, ModelContent(space, pmi, orders, measured, "Made by the tests.\n"))
    add_bigrams(folder, load_bigrams("gst", project))


def _make_built(root):
    write_default_corpus(root / "data" / "corpus")
    write_small_documents(root / "data" / "documents")
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    # Lengths as trained: of so few words, the rare ones of the default would hardly differ.
    params["embeddings"] |= {
        "base": "none",
        "dimensions": 16,
        "epochs": 2,
        "min_count": 3,
        "scale": "none",
    }
    params["grid"] |= {
        "mechanisms": ["madlib"],
        "strategies": ["S1", "S2", "S3", "S4"],
        "segmentations": list(SEGMENTATIONS),
        "epsilons": [1.0, 20.0],
    }
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name in ("sample_corpus", "count_ngrams", "build_collocations", "segment_corpus"):
            run_stage(name)
        for segmentation in SEGMENTATIONS:
            for name in ("train_embeddings", "build_neighborhoods", "count_bigrams"):
                run_stage(name, segmentation)
        run_stage("measure_structure")
        # Tests run any mechanism: the plans are those of all of them.
        grid = params["grid"] | {"mechanisms": list(MECHANISMS)}
        (root / "params.yaml").write_text(yaml.safe_dump(params | {"grid": grid}), encoding="utf-8")
        run_stage("plan_budgets")
        (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    for check in CHECKED_BY:  # the checks have tests of their own and take seconds to start
        write_json({"success": True}, root / "artifacts" / "checks" / check)


@pytest.fixture(scope="session")
def _built(tmp_path_factory):
    """The built project of this worker; only for reading."""
    root = tmp_path_factory.mktemp("shared") / "project"
    shutil.copytree(build_once(tmp_path_factory, "built", _make_built), root)
    share(root)
    return root


@pytest.fixture(scope="session")
def _listed(_built, tmp_path_factory):
    """Built project with word orders; read-only."""

    def make_listed(root):
        shutil.copytree(_built, root, dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            run_stage("build_word_orders")

    root = tmp_path_factory.mktemp("shared") / "listed"
    shutil.copytree(build_once(tmp_path_factory, "listed", make_listed), root)
    share(root)
    return root


@pytest.fixture(scope="session")
def packaged(_built, tmp_path_factory):
    """A toy packaged model of the built project's words, called toy; only for reading."""
    root = build_once(
        tmp_path_factory, "packaged", lambda root: write_toy_model(root / "toy", "toy", _built)
    )
    share(root)
    return PackagedModel(root / "toy")


@pytest.fixture(scope="session", autouse=True)
def _no_data_of_the_user(tmp_path_factory):
    """No test reads or writes the data folder of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEXVEIL_HOME", str(tmp_path_factory.mktemp("home") / "lexveil"))
        yield


def once(function, key):
    """A function that computes each result once for all tests of this process."""
    results = {}

    def kept(*arguments):
        asked = key(*arguments)
        if asked is None:
            return function(*arguments)
        if asked not in results:
            results[asked] = function(*arguments)
        return results[asked]

    return kept


@pytest.fixture(scope="session", autouse=True)
def _shipped_model_is_prepared_once():
    """Count the pairs of words of a shipped model, and find the replacements of its screened words,
    once for all tests, whose caches are empty.
    """

    def shipped(model, segmentation):
        is_shipped = model.folder.parent == paths.MODELS
        return (model.folder, segmentation) if is_shipped else None

    def screened(vectors, screened, key):
        return key, screened.tobytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PackagedModel, "bigrams", once(PackagedModel.bigrams, shipped))
        patch.setattr(engine, "replacements", once(engine.replacements, screened))
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_disk():
    """Do not wait for the disk: tests/crash_states is about what a power cut leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "durable", lambda con: con.execute("pragma synchronous = off"))
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _own_environment():
    """Restore the environment after each test, so that variables that a command sets end with its
    test.
    """
    with mock.patch.dict(os.environ):
        yield


def estimate_quickly(patch, figures):
    """Estimate the meaning of an epsilon from few words, once for all tests that are about
    something else.
    """
    patch.setattr("lexveil.readers.public_words.WORDS_OF_A_BAND", 30)
    patch.setattr("lexveil.readers.estimate.DRAWS", 256)
    patch.setattr("lexveil.io.artifacts.project.Project.recovery", figures)


@pytest.fixture(autouse=True)
def _quick_meaning(monkeypatch, tmp_path_factory):
    estimate_quickly(monkeypatch, tmp_path_factory.getbasetemp() / "figures")


@pytest.fixture
def cli(capsys):
    """Runs `lexveil ...`, which ends with ``code``, and gives what it prints; a refusal is one line
    after ``told``."""

    def run(*arguments, code=0, told=""):
        capsys.readouterr()
        assert command(*arguments) == code
        shown = capsys.readouterr()
        assert code != 2 or (shown.out == "" and re.fullmatch(told + r"lexveil.*\n", shown.err)), (
            shown
        )
        return shown

    return run


def stand_outside(packaged, folder, patch):
    """Make an empty current folder in no project, for a user who has the model toy in an own data
    folder, $LEXVEIL_HOME.
    """
    home = folder / "home"
    here = folder / "here"
    home.mkdir(mode=0o700)
    (home / "models").mkdir()
    (home / "models" / "toy").symlink_to(packaged.folder)
    here.mkdir()
    patch.setenv("LEXVEIL_HOME", str(home))
    patch.chdir(here)
    return here


@pytest.fixture
def outside(packaged, tmp_path, monkeypatch):
    """The empty folder in no project."""
    return stand_outside(packaged, tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _messages_are_shown():
    """Show messages on standard error, as the command line does."""
    with messages_on_stderr():
        logging.getLogger("lexveil").propagate = True  # to ``caplog``
        yield


# The fixtures of shared folders. A test that asks for none of them does not know the folders.
SHARED = {"_built", "_listed", "made", "packaged", "template"}


@pytest.fixture(autouse=True)
def _shared_is_only_read(request):
    yield
    changed = [] if SHARED.isdisjoint(request.fixturenames) else changes()
    assert not changed, (
        f"the test wrote into what all tests share (the fixture `project` is a copy): {changed}"
    )


@pytest.fixture
def built(_built, tmp_path_factory, monkeypatch):
    """A project's folder with everything made, as current folder; artifacts and data are links, for
    reading."""
    return stand_beside(_built, tmp_path_factory.mktemp("beside"), monkeypatch)


@pytest.fixture
def listed(_listed, tmp_path_factory, monkeypatch):
    """Built project with word orders, linked for one test."""
    return stand_beside(_listed, tmp_path_factory.mktemp("beside"), monkeypatch)


def made_of(built, factory, make):
    """A copy of a project in which ``make`` has run."""
    root = factory.mktemp("made") / "project"
    shutil.copytree(built, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        make()
    return root


@pytest.fixture
def project(_built, tmp_path, monkeypatch):
    """A copy of it, as current folder, to change at will."""
    root = tmp_path / "project"
    shutil.copytree(_built, root)
    (root / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    monkeypatch.chdir(root)
    return root
