"""What is read of a project and of installed models: embeddings, collocations, models by name; no pickle."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import paths
from lexveil.artifacts import model_store
from lexveil.artifacts.collocation_tables import load_collocations, load_pmi
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
    assert sorted(file.name for file in paths.embedding("gst").iterdir()) == [
        "counts.npy", "meta.json", "vectors.npy", "words.txt",
    ]  # fmt: skip


def test_a_missing_space_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingArtifact, match=r"embeddings/mst .*train_embeddings@mst"):
        load_embedding("mst")


def test_the_collocations_of_the_base_have_their_pmi(tmp_path: Path) -> None:
    folder = tmp_path / paths.COLLOCATIONS
    folder.mkdir(parents=True)
    for name, pairs, triples in (
        ("", [("prime", "minister", 7.5)], [("new", "south", "wales", 9.0)]),
        ("base_", [("ice", "cream", 8.25), ("credit", "card", 6.5)], []),
    ):
        words = ("first_word", "second_word", "third_word")
        for kind, size, rows in (("bigrams", 2, pairs), ("trigrams", 3, triples)):
            columns = {
                word: pa.array([row[place] for row in rows], pa.string()) for place, word in enumerate(words[:size])
            }
            columns["pmi_bits"] = pa.array([row[-1] for row in rows], pa.float64())
            pq.write_table(pa.table(columns), folder / f"{name}{kind}.parquet")
    found = {"prime_minister": 7.5, "ice_cream": 8.25, "credit_card": 6.5, "new_south_wales": 9.0}
    assert load_pmi(tmp_path) == found
    collocations = load_collocations(tmp_path)
    pairs, triples = collocations.scores(collocations.ids(["ice", "cream", "prime", "minister"]), np.array([0, 2, 4]))
    assert (pairs[0], pairs[2]) == (8.25, 7.5) and np.all(triples == -np.inf)


def test_the_user_s_folder_and_its_own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEXVEIL_HOME")
    assert paths.user_data().name == "lexveil" and paths.user_data().is_absolute()
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path))
    assert paths.user_data() == tmp_path


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
@pytest.mark.parametrize("name", ["toi", "../toy", "own", ""])
def test_a_name_that_none_has(name: str) -> None:
    with pytest.raises(RequestError, match=r"there are .*toy, own"):
        model_store.find(name)


@pytest.mark.usefixtures("outside")
def test_own_is_of_a_project() -> None:
    with pytest.raises(RequestError, match="is in no project"):
        Model.load(name="own")
