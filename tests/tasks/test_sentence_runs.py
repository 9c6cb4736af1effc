"""Runs of sentences in the grid: what is written and measured, and what is skipped."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lexveil import RequestError, paths
from lexveil.artifacts import sentence_banks
from lexveil.artifacts.calibrations import SKIPPED
from lexveil.artifacts.sentence_banks import read_card
from lexveil.artifacts.sentence_runs import epsilon_of_sentences, made_sentence_runs
from lexveil.config import load_params
from lexveil.data import public_sentences
from lexveil.levels import RecoveryTarget, stage_name
from lexveil.recovery import bank_levels
from lexveil.runtime.tables import read_json
from tasks import embed_sentences
from tests.conftest import run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow
RUN = ("tem", "S5", "r0.2")
FILES = ("tem", "S5", RecoveryTarget(0.2))


@pytest.fixture
def with_levels(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a small bank whose levels are calibrated on few texts."""
    for module in (embed_sentences, sentence_banks):
        monkeypatch.setattr(module, "FEWEST", 20)
    for module in (bank_levels, public_sentences, embed_sentences):
        monkeypatch.setattr(module, "CANDIDATES", 60)
    change_params(evaluation={"shuffles": 1, "max_texts": 30})
    run_stage("collect_sentences")
    run_stage("embed_sentences")
    run_stage("privatize", "none", "none", "0.0")
    return project


def test_texts_become_sentences_of_the_bank_at_its_level(with_levels: Path) -> None:
    run_stage("privatize", *RUN)
    folder = paths.private(*FILES)
    record = read_json(folder / "record.json", "privatize")
    level = {one.level: one for one in read_card(paths.BANK).levels}["balanced"]
    assert (record["strategy"], record["mode"], record["base_epsilon"]) == (
        *("S5", "experiment", level.epsilon),
    )
    assert record["protection"]["level"] == "balanced"
    assert record["protection"]["linkage"] == level.linkage
    log = pq.read_table(folder / "tokens.parquet")
    documents = pq.read_table(folder / "documents.parquet")
    assert log.num_rows == 4 * documents.num_rows  # these documents have one text each
    sentences = pq.read_table(paths.BANK / "sentences.parquet").column("text").to_pylist()
    rows = log.column("word_id").to_pylist()
    texts = documents.column("text").to_pylist()
    assert texts[1] == " ".join(sentences[row] for row in rows[4:8])
    before = (folder / "documents.parquet").read_bytes()
    run_stage("privatize", *RUN)
    assert (folder / "documents.parquet").read_bytes() == before
    run_stage("train_language_model")
    run_stage("train_attackers")
    run_stage("evaluate", *RUN)
    scores = read_json(paths.evaluation(*FILES), "evaluate")
    assert (scores["level"], scores["epsilon"]) == (0.2, level.epsilon)
    found = read_json(paths.recovery(*FILES), "evaluate")
    for name, by_size in found["linkage"].items():
        largest = by_size[max(by_size, key=int)]
        assert 0 <= largest["likelihood"] <= 1 and largest["structure"] == pytest.approx(
            1 / int(max(by_size, key=int)), abs=1e-6
        )
        assert 0 <= found["named"][name]["content"] <= 1
    assert not {*texts} & {json.dumps(found)}


def test_a_level_that_the_bank_does_not_have_is_skipped(project: Path) -> None:
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


def test_runs_of_sentences_have_stages_of_their_own() -> None:
    assert stage_name("privatize", *FILES) == "privatize_sentences@r0.2"
    assert stage_name("evaluate", "tem", "S3", RecoveryTarget(0.2)) == "evaluate@tem-S3-r0.2"
