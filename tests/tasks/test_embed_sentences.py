"""The bank of a project: which sentences of the corpus it has, and what is said without one."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lexveil import Model, RequestError
from lexveil.base import paths
from lexveil.base.runtime.tables import write_json
from lexveil.core.accounting.linkage import CANDIDATES
from lexveil.io.artifacts import sentence_banks
from lexveil.io.artifacts.bank_neighbours import neighbours
from lexveil.io.artifacts.default_bank import bank_of
from lexveil.io.artifacts.sentence_banks import open_bank, read_card
from lexveil.readers import bank_levels
from tasks import collect_sentences, embed_sentences
from tests.conftest import run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow
FEW = 20  # sentences are enough here


@pytest.fixture
def with_bank(project, monkeypatch):
    """A project whose bank is made, of fewer sentences than banks have elsewhere."""
    for module in (embed_sentences, sentence_banks):
        monkeypatch.setattr(module, "FEWEST", FEW)
    monkeypatch.setattr(bank_levels, "CANDIDATES", 10**6)  # levels have tests of their own
    run_stage("collect_sentences")
    run_stage("embed_sentences")
    return project


def test_a_bank_is_of_the_sentences_of_the_sample(with_bank):
    corpus = " ".join(pq.read_table(paths.SAMPLE).column("text").to_pylist())
    folded = " ".join(corpus.split())
    model = Model.load(Path(), "own")
    bank = open_bank(bank_of(model), model)
    assert len(bank.public) == CANDIDATES
    assert len(bank) > FEW and all(sentence in folded for sentence in bank.texts)
    assert bank.card.sentences == len(pq.read_table(paths.SENTENCES))
    assert [source.name for source in bank.card.sources] == ["artifacts/corpus/sample.parquet"]
    assert bank.vectors.shape[1] == model.embedding("S3").vectors.shape[1]
    assert neighbours(paths.BANK, bank.texts[3], 1, model)[0].sentence == bank.texts[3]


def test_the_stages_give_the_same_bytes_twice(with_bank):
    before = read_card(paths.BANK)
    run_stage("collect_sentences")
    run_stage("embed_sentences")
    assert read_card(paths.BANK) == before


def test_params_say_how_many_and_how_long(with_bank):
    change_params(sentences={"size": 1000, "max_words": 8, "public": True})
    run_stage("collect_sentences")
    assert max(pq.read_table(paths.SENTENCES).column("n_words").to_pylist()) == 8
    run_stage("embed_sentences")
    card = read_card(paths.BANK)
    assert (card.most_words, card.public) == (8, True)


def test_weights_are_those_of_the_sample(project):
    sample = pq.read_table(paths.SAMPLE)
    parts = [*collect_sentences.sampled(paths.SAMPLE, {"": 5.0})]
    assert [text for part in parts for text in part.texts] == sample.column("text").to_pylist()
    assert {weight for part in parts for weight in part.weights} == {5.0}


def test_too_few_sentences_make_no_bank(project, capsys):
    change_params(sentences={"max_words": 3})
    run_stage("collect_sentences")
    run_stage("embed_sentences")
    assert "no bank was made: it needs 1,000" in capsys.readouterr().out
    assert not [*paths.BANK.iterdir()]
    with pytest.raises(RequestError, match=r"fewer than 1,000 sentences .* --bank|bank"):
        bank_of(Model.load(Path(), "own"))


def test_without_an_embedding_of_collocations_there_is_none(project):
    change_params(grid={"strategies": ["S1"], "segmentations": ["word"]})
    run_stage("collect_sentences")
    run_stage("embed_sentences")
    assert not [*paths.BANK.iterdir()]


def test_a_release_takes_the_bank_of_the_project_if_it_is_public(with_bank):
    import lexveil

    how = {"strategy": "S5", "epsilon": 5.0, "model": "own"}
    texts = ["it was a good day", ""]
    with pytest.raises(RequestError, match=r"sentences\.public: true"):
        lexveil.privatize(texts, **how)
    change_params(sentences={"public": True})
    run_stage("embed_sentences")
    for check in ("corpus", "collocations", "coverage"):
        write_json({"success": True}, paths.CHECKS / f"{check}.json")
    done = lexveil.privatize(texts, **how)
    assert all(done.values)
    assert done.record.sentences.bank_sentences == read_card(paths.BANK).sentences
