"""Runs of sentences in the grid: what is written and measured, and what is skipped."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from lexveil import RequestError
from lexveil.base import paths
from lexveil.base.levels import RecoveryTarget, stage_name
from lexveil.base.runtime.tables import read_json
from lexveil.io.artifacts import sentence_banks
from lexveil.io.artifacts.levels import SKIPPED, epsilon_of_sentences, made_sentence_runs
from lexveil.io.artifacts.sentence_banks import read_card
from lexveil.io.config import load_params
from lexveil.lab.data import public_sentences
from lexveil.readers import bank_levels
from tasks import embed_sentences
from tests.conftest import estimate_quickly, made_of, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow
RUN = ("tem", "S5", "r0.2")
FILES = ("tem", "S5", RecoveryTarget(0.2))
WRITTEN = paths.private(*FILES) / "documents.parquet"


def calibrate_on_few_texts(patch):
    """Make banks of few sentences, whose levels are calibrated on few texts."""
    for module in (embed_sentences, sentence_banks):
        patch.setattr(module, "FEWEST", 20)
    for module in (bank_levels, public_sentences, embed_sentences):
        patch.setattr(module, "CANDIDATES", 60)


@pytest.fixture(scope="module")
def evaluated(_built, tmp_path_factory):
    """A project with a small bank, in which a run of sentences was written and evaluated."""

    def make():
        change_params(evaluation={"shuffles": 1, "max_texts": 30})
        run_stage("collect_sentences")
        run_stage("embed_sentences")
        run_stage("privatize", "none", "none", "0.0")
        run_stage("privatize", *RUN)
        run_stage("train_language_model")
        run_stage("train_attackers")
        run_stage("evaluate", *RUN)

    with pytest.MonkeyPatch.context() as patch:
        estimate_quickly(patch, tmp_path_factory.mktemp("figures"))
        calibrate_on_few_texts(patch)
        return made_of(_built, tmp_path_factory, make)


@pytest.fixture
def with_run(evaluated, monkeypatch):
    """The project as current folder; only for reading."""
    calibrate_on_few_texts(monkeypatch)
    monkeypatch.chdir(evaluated)
    return evaluated


@pytest.fixture
def balanced(with_run):
    """The level of the bank at which the run was written."""
    levels = {one.level: one for one in read_card(paths.BANK).levels}
    return levels["balanced"]


@pytest.fixture
def texts(with_run):
    """The texts of the run."""
    return list(pq.read_table(WRITTEN).column("text").to_pylist())


def test_the_record_of_a_run_has_the_level_of_the_bank(balanced):
    record = read_json(WRITTEN.with_name("record.json"), "privatize")
    expected = {"strategy": "S5", "mode": "experiment", "base_epsilon": balanced.epsilon}
    assert {name: record[name] for name in expected} == expected
    protection = record["protection"]
    assert (protection["level"], protection["linkage"]) == ("balanced", balanced.linkage)


def test_texts_become_four_sentences_of_the_bank_each(texts):
    """These documents have one text each."""
    rows = pq.read_table(WRITTEN.with_name("tokens.parquet")).column("word_id").to_pylist()
    assert len(rows) == 4 * len(texts)
    sentences = pq.read_table(paths.BANK / "sentences.parquet").column("text").to_pylist()
    assert texts[1] == " ".join(sentences[row] for row in rows[4:8])


def test_a_run_gives_the_same_bytes_again(evaluated, tmp_path, monkeypatch):
    shutil.copytree(evaluated, tmp_path / "again")
    monkeypatch.chdir(tmp_path / "again")
    calibrate_on_few_texts(monkeypatch)
    run_stage("privatize", *RUN)
    assert WRITTEN.read_bytes() == (evaluated / WRITTEN).read_bytes()


def test_the_scores_of_a_run_name_its_level(balanced):
    scores = read_json(paths.evaluation(*FILES), "evaluate")
    assert (scores["level"], scores["epsilon"]) == (0.2, balanced.epsilon)


@pytest.mark.usefixtures("with_run")
def test_what_a_reader_links_and_names_is_measured(texts):
    found = read_json(paths.recovery(*FILES), "evaluate")
    for name, by_size in found["linkage"].items():
        size = max(by_size, key=int)
        assert 0 <= by_size[size]["likelihood"] <= 1
        assert by_size[size]["structure"] == pytest.approx(1 / int(size), abs=1e-6)
        assert 0 <= found["named"][name]["content"] <= 1
    written = json.dumps(found)
    assert not [text for text in texts if text in written]


def test_a_level_that_the_bank_does_not_have_is_skipped(project):
    """The bank is too small: the files of the run say why, and nothing else comes of it."""
    change_params(sentences={"max_words": 3})
    run_stage("collect_sentences")
    run_stage("embed_sentences")
    run_stage("privatize", *RUN)
    run_stage("evaluate", *RUN)
    assert [file.name for file in paths.private(*FILES).iterdir()] == [SKIPPED]
    for file in (paths.evaluation(*FILES), paths.recovery(*FILES)):
        assert "too few sentences" in read_json(file, "evaluate")["skipped"]
    assert made_sentence_runs(load_params().grid.sentence_runs()) == []
    with pytest.raises(RequestError, match="too few sentences for a bank"):
        epsilon_of_sentences(RecoveryTarget(0.2))


def test_runs_of_sentences_have_stages_of_their_own():
    assert stage_name("privatize", *FILES) == "privatize_sentences@r0.2"
    assert stage_name("evaluate", "tem", "S3", RecoveryTarget(0.2)) == "evaluate@tem-S3-r0.2"
