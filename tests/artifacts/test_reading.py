"""What is read of a project and of installed models: embeddings, collocations, models by name; no pickle."""

from pathlib import Path

import numpy as np
import pytest

from lexveil import paths
from lexveil.artifacts import model_store
from lexveil.artifacts.embeddings import load_embedding, write_embedding
from lexveil.artifacts.model import Model
from lexveil.artifacts.packaged_model import PackagedModel
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import MissingArtifact, RequestError


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space = WordSpace(["a", "new_york", "’\u2028x"], np.eye(3, 5, dtype=np.float32), np.array([9, 5, 1]))
    write_embedding(space, paths.embedding("gst"))
    read = load_embedding("gst")
    assert list(read.tokens) == list(space.tokens)  # a line ends at a line feed and nowhere else
    assert np.array_equal(read.vectors, space.vectors) and np.array_equal(read.counts, space.counts)


def test_a_missing_space_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingArtifact, match=r"embeddings/mst .*train_embeddings@mst"):
        load_embedding("mst")


@pytest.mark.usefixtures("outside")
def test_a_model_of_the_user_is_found_after_the_shipped_ones(
    packaged: PackagedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert model_store.find("toy").hash == packaged.hash
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "toy").symlink_to(packaged.folder)
    monkeypatch.setattr(paths, "MODELS", tmp_path / "shipped")
    assert model_store.find("toy").folder == tmp_path / "shipped" / "toy"


@pytest.mark.usefixtures("outside")
def test_a_name_that_none_has() -> None:
    for name in ("toi", "../toy", "own", ""):
        with pytest.raises(RequestError, match=r"there are .*toy, own"):
            model_store.find(name)
    with pytest.raises(RequestError, match="is in no project"):
        Model.load(name="own")
