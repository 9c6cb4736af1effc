"""Checkpoints: found again, never half-written; and sentences to show a training by."""

from pathlib import Path

import numpy as np

from lexveil.artifacts.training_checkpoints import Checkpoints, some_sentences
from lexveil.embeddings.training import TrainingState


def state(epoch: int) -> TrainingState:
    rng = np.random.default_rng(epoch)
    vectors = rng.normal(size=(2, 7, 3)).astype(np.float32)
    key = rng.integers(0, 2**32, size=624, dtype=np.uint32)
    return TrainingState(epoch, vectors[0], vectors[1], key, 17, [0.1 + 0.2, None])


def test_a_damaged_checkpoint_counts_as_none(tmp_path: Path) -> None:
    def saved() -> tuple[Checkpoints, Path]:
        checkpoints = Checkpoints(tmp_path / "work")
        checkpoints.save(state(1))
        return checkpoints, next((tmp_path / "work").rglob("state.json")).parent

    checkpoints, folder = saved()
    (folder / "vectors.npy").write_bytes((folder / "vectors.npy").read_bytes()[:-1] + b"\x07")
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


def test_sentences_come_from_all_over_the_file(tmp_path: Path) -> None:
    corpus, lines = tmp_path / "corpus.txt", [[f"é{i}", "b"] for i in range(1000)]
    corpus.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    assert [lines.index(line) // 100 for line in some_sentences(corpus, 50)][::5] == list(range(10))
    assert some_sentences(corpus, 5000) == lines  # all of a small file, each once
