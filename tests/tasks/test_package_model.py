"""The model that a project can hand on: from the corpus to a folder that passes every check."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from lexveil import RequestError, paths
from lexveil.artifacts.base_model import base_space
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.config import EmbeddingParams, MachineParams
from lexveil.data.model_verification import verify_folder
from lexveil.embeddings.scaling import scaled
from lexveil.embeddings.word_space import WordSpace
from lexveil.modelling.screening import count_documents
from lexveil.text.screens import unlike_a_word
from tests.conftest import run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexveil.modelling.packaging.N_TEXTS", 20)


def assert_rounded(packaged: WordSpace, trained: WordSpace) -> None:
    """Vectors are those of the training to half a step of 127."""
    rows = [list(trained.tokens).index(token) for token in packaged.tokens]
    error = np.abs(packaged.vectors - trained.vectors[rows]).max(axis=1)
    assert np.all(error <= np.abs(trained.vectors[rows]).max(axis=1) / 254 + 1e-6)


def test_a_project_makes_a_sound_model_of_what_passed(project: Path, few_texts: None) -> None:
    named = {"name": "news", "license": "CC0-1.0", "screens": ["patterns", "slurs", "names"]}
    change_params(model=named | {"min_documents": 12, "max_tokens": 300})
    run_stage("package_model")
    card = verify_folder(paths.PACKAGED)
    model = PackagedModel(paths.PACKAGED)
    assert (card.name, card.license, card.n_tokens) == ("news", "CC0-1.0", len(model.tokens))
    assert 2 < len(model.tokens) <= 300
    assert all(unlike_a_word(token) is None for token in model.tokens)
    known = {one.token: one for one in count_documents("gst", 12, MachineParams())}
    assert all(known[token].documents >= 12 for token in model.tokens)
    assert model.space("mst").counts.tolist() == [known[token].count for token in model.tokens]
    # A collocation is looked up by its words.
    assert all(word in set(model.tokens) for token in model.tokens for word in token.split("_"))
    assert_rounded(model.space("mst"), load_embedding("gst"))
    assert set(card.dropped) >= {"number or user name", "beyond max_tokens"}
    assert (
        "sources" not in card.parameters["model"]
        and card.parameters["embeddings"]["dimensions"] == 16
    )
    before = {
        file: file.read_bytes() for file in sorted(paths.PACKAGED.rglob("*")) if file.is_file()
    }
    run_stage("package_model")
    assert before == {
        file: file.read_bytes() for file in sorted(paths.PACKAGED.rglob("*")) if file.is_file()
    }


def test_a_model_can_have_lengths_of_its_own_beside_those_of_the_embedding(
    project: Path, few_texts: None
) -> None:
    change_params(
        model={"name": "news", "min_documents": 12, "max_tokens": 300, "scale": "frequency"}
    )
    run_stage("package_model")
    card = verify_folder(paths.PACKAGED)
    model = PackagedModel(paths.PACKAGED)
    assert card.parameters["model"]["scale"] == "frequency"
    direct = model.space("mst")
    trained = model.space("mst", as_trained=True)
    embedded = load_embedding("gst")
    assert_rounded(trained, embedded)
    np.testing.assert_allclose(
        direct.vectors, scaled(trained, "frequency").vectors, rtol=1e-5, atol=1e-6
    )
    assert not np.allclose(direct.vectors, trained.vectors, rtol=0.1)
    base = base_space(EmbeddingParams(base="news", base_tokens=None), model, "gst")
    np.testing.assert_array_equal(base.vectors, trained.vectors)  # what a training begins with


def test_nothing_that_passes_is_an_error_with_a_way_out(project: Path, few_texts: None) -> None:
    change_params(model={"min_documents": 100_000})
    with pytest.raises(
        RequestError, match=r"0 tokens stand in 100000 documents .* lower model\.min_documents"
    ):
        run_stage("package_model")
    assert not paths.PACKAGED.exists()


def test_a_grid_of_words_builds_nothing_of_collocations(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A segmentation that no strategy needs is reported, and segmented files of another grid are
    ignored.
    """
    change_params(grid={"strategies": ["S1"], "segmentations": ["word", "mst"]})
    run_stage("segment_corpus")
    assert "no strategy of the grid needs mst" in capsys.readouterr().out
    for folder in ("structure", "word_orders", "model"):
        shutil.rmtree(paths.ARTIFACTS / folder, ignore_errors=True)
    change_params(grid={"segmentations": ["word"]})
    for name in ("measure_structure", "build_word_orders", "package_model"):
        run_stage(name)
    assert [file.name for file in (paths.ARTIFACTS / "structure").iterdir()] == ["word.json"]
    assert [folder.name for folder in (paths.ARTIFACTS / "word_orders").iterdir()] == ["word"]
    assert not [*paths.PACKAGED.iterdir()]
