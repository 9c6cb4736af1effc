"""Reading of a project and of models: embeddings, models by name, base models, the model that
ships, checkpoints.
"""

import numpy as np
import pytest

from lexveil import MissingArtifactError, Model, ParameterError, RequestError
from lexveil.base import paths
from lexveil.core.embeddings.training import TrainingState
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.screens import has_slur, unlike_a_word
from lexveil.io.artifacts import model_store
from lexveil.io.artifacts.base_model import find_base
from lexveil.io.artifacts.embeddings import load_embedding, write_embedding
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.artifacts.training import Checkpoints, some_sentences
from lexveil.io.config import EmbeddingParams
from lexveil.lab.data.model_verification import verify_folder
from lexveil.lab.modelling.screening import listed_slurs, own


def test_what_is_written_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = WordSpace(
        ["a", "new_york", "’\u2028x"], np.eye(3, 5, dtype=np.float32), np.array([9, 5, 1])
    )
    write_embedding(space, paths.embedding("gst"))
    read = load_embedding("gst")
    assert list(read.tokens) == list(space.tokens)  # a line ends at a line feed and nowhere else
    assert np.array_equal(read.vectors, space.vectors) and np.array_equal(read.counts, space.counts)


def test_a_missing_space_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingArtifactError, match=r"embeddings/mst .*train_embeddings@mst"):
        load_embedding("mst")


@pytest.mark.usefixtures("outside")
def test_a_model_of_the_user_is_found_after_the_shipped_ones(packaged, monkeypatch, tmp_path):
    assert model_store.find("toy").hash == packaged.hash
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "toy").symlink_to(packaged.folder)
    monkeypatch.setattr(paths, "MODELS", tmp_path / "shipped")
    assert model_store.find("toy").folder == tmp_path / "shipped" / "toy"


@pytest.mark.usefixtures("outside")
def test_a_name_that_none_has():
    for name in ("toi", "../toy", "own", ""):
        with pytest.raises(RequestError, match=r"choose from: .*toy, own"):
            model_store.find(name)
    with pytest.raises(RequestError, match="belongs to no project"):
        Model.load(name="own")


@pytest.fixture
def named(outside, packaged):
    return f"toy@{packaged.hash[:12]}"


def test_a_base_is_found_by_name_and_hash(named, packaged, monkeypatch):
    found = find_base(EmbeddingParams(base=named))
    assert found is not None and found.hash == packaged.hash
    assert find_base(EmbeddingParams(base="none")) is None
    with pytest.raises(ParameterError, match=f"toy is not part of the library; write {named}"):
        find_base(EmbeddingParams(base="toy"))
    monkeypatch.setattr(paths, "MODELS", found.folder.parent)  # as if it shipped
    assert find_base(EmbeddingParams(base="toy")) == found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"base": "toy@000000000000"},
            r"embeddings\.base is toy@000000000000, but the installed model is toy@",
        ),
        (
            {"base": "other"},
            r"there is no model other \(installed models: .*toy\).*lexveil model add",
        ),
        (
            {"dimensions": 300},
            r"embeddings\.dimensions is 300, but .* base model toy have 16 .*dimensions: null",
        ),
    ],
)
def test_what_does_not_go_together(named, settings, message):
    with pytest.raises(ParameterError, match=message):
        find_base(EmbeddingParams(**{"base": named} | settings))


EN = PackagedModel(paths.MODELS / "en")


def test_every_number_and_hash_of_it_is_right():
    card = verify_folder(EN.folder)
    assert card.name == "en" and card.license == "CC-BY-4.0"
    assert sum(file.stat().st_size for file in EN.folder.rglob("*") if file.is_file()) <= 15e6


def test_its_screens_hold():
    assert EN.card.parameters["model"]["min_documents"] >= 30
    slurs = listed_slurs()
    plain = own("plain_words.txt")
    assert [
        token for token in EN.tokens if unlike_a_word(token) or has_slur(token, slurs, plain)
    ] == []
    words = {token for token in EN.tokens if "_" not in token}
    assert all(words.issuperset(token.split("_")) for token in EN.tokens)


def test_it_knows_everyday_words_and_is_good_enough():
    words = (
        "please",
        "password",
        "invoice",
        "refund",
        "new_york",
        "credit_card",
        "as_soon_as",
        "i_don't_know",
    )
    assert set(words) <= set(EN.tokens)
    assert EN.card.quality["similarity"]["wordsim353"]["spearman"] >= 0.55


def state(epoch):
    rng = np.random.default_rng(epoch)
    vectors = rng.normal(size=(2, 7, 3)).astype(np.float32)
    key = rng.integers(0, 2**32, size=624, dtype=np.uint32)
    return TrainingState(epoch, vectors[0], vectors[1], key, 17, [0.1 + 0.2, None])


def test_a_damaged_checkpoint_counts_as_none(tmp_path):
    def saved():
        checkpoints = Checkpoints(tmp_path / "work")
        checkpoints.save(state(1))
        return checkpoints, next((tmp_path / "work").rglob("state.json")).parent

    checkpoints, folder = saved()
    (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-1] + b"\x07")
    assert checkpoints.load() is None
    checkpoints, folder = saved()
    (folder / "state.json").write_text("{")
    assert checkpoints.load() is None
    # Killed after a new one was written and before the old one was removed: the new one counts,
    # unless it is damaged.
    checkpoints, folder = saved()
    later = folder.with_name("epoch-00002")
    checkpoints.save(state(2))
    checkpoints.save(state(1))
    folder.with_name(".epoch-00003.partial").mkdir()
    assert checkpoints.load().epoch == 1
    folder.rename(tmp_path / "kept")
    checkpoints.save(state(2))
    (tmp_path / "kept").rename(folder)
    assert checkpoints.load().epoch == 2
    (later / "generator_key.npy").unlink()
    assert checkpoints.load().epoch == 1


def test_sentences_come_from_all_over_the_file(tmp_path):
    corpus = tmp_path / "corpus.txt"
    lines = [[f"é{i}", "b"] for i in range(1000)]
    corpus.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    assert [lines.index(line) // 100 for line in some_sentences(corpus, 50)][::5] == list(range(10))
    assert some_sentences(corpus, 5000) == lines  # all of a small file, each once
