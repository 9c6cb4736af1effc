"""Embeddings on disk: plain files, no pickle."""

from pathlib import Path

import numpy as np
import pytest

from lexveil import paths
from lexveil.artifacts.embeddings import load_embedding, write_embedding
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import MissingArtifact


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
