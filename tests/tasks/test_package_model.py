"""The model that a project can hand on: from the corpus to a folder that passes every check."""

import shutil

import numpy as np
import pytest

from lexveil import RequestError
from lexveil.base import paths
from lexveil.core.embeddings.scaling import scaled
from lexveil.core.text.screens import unlike_a_word
from lexveil.io.artifacts.base_model import base_space
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.config import EmbeddingParams, MachineParams
from lexveil.lab.data.model_verification import verify_folder
from lexveil.lab.modelling.screening import count_documents
from tests.conftest import made_of, run_stage
from tests.tasks.changing import change_params

pytestmark = pytest.mark.slow


def package_on_few_texts(patch):
    """Measure the structure of a packaged model on few texts."""
    patch.setattr("lexveil.lab.modelling.packaging.N_TEXTS", 20)


@pytest.fixture
def few_texts(monkeypatch):
    package_on_few_texts(monkeypatch)


def assert_rounded(packaged, trained):
    """Vectors are those of the training to half a step of 127."""
    rows = [list(trained.tokens).index(token) for token in packaged.tokens]
    error = np.abs(packaged.vectors - trained.vectors[rows]).max(axis=1)
    assert np.all(error <= np.abs(trained.vectors[rows]).max(axis=1) / 254 + 1e-6)


@pytest.fixture(scope="module")
def with_model(_built, tmp_path_factory):
    """A project that packaged a model of words in at least 12 documents."""

    def make():
        named = {"name": "news", "license": "CC0-1.0", "screens": ["patterns", "slurs", "names"]}
        change_params(model=named | {"min_documents": 12, "max_tokens": 300})
        run_stage("package_model")

    with pytest.MonkeyPatch.context() as patch:
        package_on_few_texts(patch)
        return made_of(_built, tmp_path_factory, make)


@pytest.fixture
def model(with_model, monkeypatch):
    """The model, in its project as current folder; only for reading."""
    monkeypatch.chdir(with_model)
    return PackagedModel(paths.PACKAGED)


def files(folder):
    """Contents of all files below a folder."""
    return {
        file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()
    }


def test_a_project_makes_a_sound_model_with_what_was_said(model):
    card = verify_folder(paths.PACKAGED)
    assert (card.name, card.license, card.n_tokens) == ("news", "CC0-1.0", len(model.tokens))
    assert {*card.dropped} >= {"number or user name", "beyond max_tokens"}


def test_the_card_of_a_model_has_its_parameters_but_not_its_sources(model):
    parameters = model.card.parameters
    assert "sources" not in parameters["model"]
    assert parameters["embeddings"]["dimensions"] == 16


def test_the_words_of_a_model_are_those_that_passed(model):
    tokens = {*model.tokens}
    assert 2 < len(tokens) <= 300
    assert not [token for token in tokens if unlike_a_word(token)]
    # A collocation is looked up by its words.
    assert {word for token in tokens for word in token.split("_")} <= tokens


def test_the_words_of_a_model_are_in_enough_documents(model):
    known = {one.token: one for one in count_documents("gst", 12, MachineParams())}
    assert min(known[token].documents for token in model.tokens) >= 12
    counts = model.space("mst").counts.tolist()
    assert counts == [known[token].count for token in model.tokens]


def test_the_vectors_of_a_model_are_those_that_were_trained(model):
    assert_rounded(model.space("mst"), load_embedding("gst"))


def test_a_model_has_the_same_bytes_again(with_model, tmp_path, monkeypatch):
    shutil.copytree(with_model, tmp_path / "again")
    monkeypatch.chdir(tmp_path / "again")
    package_on_few_texts(monkeypatch)
    run_stage("package_model")
    assert files(paths.PACKAGED) == files(with_model / paths.PACKAGED)


def test_a_model_can_have_lengths_of_its_own_beside_those_of_the_embedding(project, few_texts):
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


def test_nothing_that_passes_is_an_error_with_a_way_out(project, few_texts):
    change_params(model={"min_documents": 100_000})
    with pytest.raises(
        RequestError, match=r"0 tokens occur in 100000 documents .* lower model\.min_documents"
    ):
        run_stage("package_model")
    assert not paths.PACKAGED.exists()


def test_a_grid_of_words_builds_nothing_of_collocations(project, capsys):
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
