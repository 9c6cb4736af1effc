"""The stage that trains the language model: how much it reads, that what it wrote is what it trained, and its words."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import paths
from lexveil.artifacts.language_models import load_language_model
from lexveil.collocations.sampling import TOKENS
from lexveil.errors import ParameterError
from lexveil.evaluation.kneser_ney import train
from lexveil.evaluation.language_model import NgramModel
from tasks import train_language_model as stage
from tests.conftest import ROOT, run_stage
from tests.tasks.changing import change_params

WORDS = [".", "the", "rare", "cat", "sat"]
SENTENCES = [[1, 3, 4, 0], [1, 3, 0], [3], [1, 2, 3, 4, 0]]  # 4, 3, 1 and 5 tokens


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"doc_id": f"d{i // 2}", "sentence_id": i % 2, "ids": ids} for i, ids in enumerate(SENTENCES)]
    paths.TOKENS.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, TOKENS), paths.TOKENS, row_group_size=2)
    return paths.TOKENS


@pytest.mark.parametrize(("limit", "taken"), [(13, 4), (12, 3), (7, 2), (1, 1)])
def test_as_many_sentences_as_the_limit_allows_and_at_least_one(tokens: Path, limit: int, taken: int) -> None:
    ids, offsets = stage.read_sentences(tokens, limit)
    assert ids.tolist() == [one for sentence in SENTENCES[:taken] for one in sentence]
    assert np.diff(offsets).tolist() == [len(sentence) for sentence in SENTENCES[:taken]]


def test_what_is_loaded_is_what_was_trained(tokens: Path) -> None:
    stage.run(tokens, WORDS, 13, paths.LANGUAGE_MODEL)
    direct = NgramModel(train(*stage.read_sentences(tokens, 13), len(WORDS)), WORDS)
    texts = ["The cat sat.", "the dog sat", "", "cat. rare the"]
    assert np.array_equal(load_language_model().score(texts).log_sum, direct.score(texts).log_sum)


def test_words_that_were_not_learnt_from_are_unknown(tokens: Path) -> None:
    stage.run(tokens, WORDS, 8, paths.LANGUAGE_MODEL)
    model = load_language_model()
    assert model.model.n_words == 4
    assert model.score(["the cat", "the rare cat"]).n_unknown.tolist() == [0, 1]


def test_a_corpus_without_sentences_is_refused(tokens: Path) -> None:
    pq.write_table(TOKENS.empty_table(), tokens)
    with pytest.raises(ParameterError, match="no sentence to learn from"):
        stage.run(tokens, WORDS, 13, paths.LANGUAGE_MODEL)
    assert not paths.LANGUAGE_MODEL.exists()


def test_nothing_is_trained_for_a_model_made_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    change_params(evaluation={"language_model": "gpt2", "gpt2_model": "somewhere"})
    run_stage("train_language_model")
    assert [file.name for file in paths.LANGUAGE_MODEL.iterdir()] == ["meta.json"]
    about = json.loads((paths.LANGUAGE_MODEL / "meta.json").read_text(encoding="utf-8"))
    assert about == {"language_model": "gpt2", "is_trained": False}
