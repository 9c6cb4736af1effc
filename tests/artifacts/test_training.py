"""Checkpoints: found again, of the same training only, never half-written; and how far a training is."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from lexveil.artifacts.training_checkpoints import Checkpoints, TrainingProgress, some_sentences
from lexveil.embeddings.training import TrainingState


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("".join(f"é{i} b c\n" for i in range(1000)), encoding="utf-8")
    return file


def state(epoch: int) -> TrainingState:
    rng = np.random.default_rng(epoch)
    vectors = rng.normal(size=(2, 7, 3)).astype(np.float32)
    key = rng.integers(0, 2**32, size=624, dtype=np.uint32)
    return TrainingState(epoch, vectors[0], vectors[1], key, 17, [0.1 + 0.2, None])


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "work")
    assert checkpoints.load() is None
    checkpoints.save(state(1))
    checkpoints.save(state(2))
    loaded = Checkpoints(tmp_path / "work").load()
    for field in dataclasses.fields(TrainingState):
        found, expected = getattr(loaded, field.name), getattr(state(2), field.name)
        assert np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected
    assert len(list((tmp_path / "work").rglob("state.json"))) == 1  # the one before is gone


def test_a_damaged_checkpoint_counts_as_none(tmp_path: Path) -> None:
    def saved() -> tuple[Checkpoints, Path]:
        checkpoints = Checkpoints(tmp_path / "work")
        checkpoints.save(state(1))
        return checkpoints, next((tmp_path / "work").rglob("state.json")).parent

    checkpoints, folder = saved()
    (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-1] + b"\x07")
    assert checkpoints.load() is None
    checkpoints, folder = saved()
    (folder / "vectors.npy").write_bytes(b"")
    assert checkpoints.load() is None
    checkpoints, folder = saved()
    (folder / "state.json").write_text("{")
    assert checkpoints.load() is None
    # Killed after a new one was written and before the old one was removed: the new one counts, unless it is damaged.
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


def test_sentences_come_from_all_over_the_file(corpus: Path, tmp_path: Path) -> None:
    lines = [line.split() for line in corpus.read_text(encoding="utf-8").splitlines()]
    some = some_sentences(corpus, 50)
    assert len(some) == 50 and some[0] == lines[0]
    assert all(line in lines for line in some)
    assert [lines.index(line) // 100 for line in some][::5] == list(range(10))
    assert some_sentences(corpus, 5000) == lines  # all of a small file, each once
    (tmp_path / "empty.txt").write_text("")
    assert some_sentences(tmp_path / "empty.txt", 5) == []


def test_progress_at_the_ends_of_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    progress = TrainingProgress("train gst", epochs=4, every=3600.0)
    progress.begin(3000, 1)
    progress.epoch_ends(2, [3.5, 3.25])
    assert capsys.readouterr().out == ""
    progress.every = 0.0
    progress.epoch_ends(3, [3.5, 3.25, 3.0])
    progress.epoch_ends(4, [None] * 4)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("train gst: 3 of 4 epochs, ") and ", loss 3.000, about " in said[0]
    assert said[1].startswith("train gst: 4 of 4 epochs, ") and "loss" not in said[1] and "left" not in said[1]
