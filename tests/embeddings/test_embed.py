"""Training: the same bytes twice, in any process, interrupted or not."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexveil.embeddings.training import TrainingState, Word2VecSettings, displacement, train_word2vec
from lexveil.errors import RequestError

SETTINGS = Word2VecSettings(
    dimensions=8, window=2, min_count=2, epochs=3, negative=2, skip_gram=True, workers=1, seed=3
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    file = tmp_path / "corpus.txt"
    lines = (" ".join(f"w{i}" for i in rng.zipf(1.5, 12) % 50) for _ in range(400))
    file.write_text("\n".join(lines) + "\nnew_york once\n")
    return file


def test_same_bytes_whatever_the_hash_seed(corpus: Path, tmp_path: Path) -> None:
    """Python randomises string hashes per process; the vectors must not notice."""
    program = (
        "import sys, numpy as np; from lexveil.embeddings.training import Word2VecSettings, train_word2vec; "
        f"np.save(sys.argv[2], train_word2vec(sys.argv[1], {SETTINGS!r}).space.vectors)"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program, str(corpus), str(tmp_path / f"{seed}.npy")]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."})
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "2.npy").read_bytes()


def test_vocabulary_counts_losses_and_workers(corpus: Path) -> None:
    sentences = [line.split() for line in corpus.read_text().splitlines()]
    trained = train_word2vec(str(corpus), replace(SETTINGS, epochs=20), sentences=sentences)
    assert "once" not in trained.space.tokens  # rarer than min_count
    words = corpus.read_text().split()
    assert trained.space.counts.tolist() == [words.count(token) for token in trained.space.tokens]
    assert trained.losses[-1] < trained.losses[0] < 3 * np.log(2)  # before training, with two words drawn as noise
    two = train_word2vec(str(corpus), replace(SETTINGS, workers=2))
    assert two.losses == [None, None, None] and np.isfinite(two.space.vectors).all()
    assert (displacement(two.space.vectors, 3) > 0).all()  # both halves of the file were read
    with pytest.raises(RequestError, match=r"no token occurs 100000 times.*min_count"):
        train_word2vec(str(corpus), replace(SETTINGS, min_count=100_000))


def copy(state: TrainingState) -> TrainingState:
    """The arrays belong to gensim, which goes on with them."""
    arrays = (array.copy() for array in (state.vectors, state.output_vectors, state.generator_key))
    vectors, outputs, key = arrays
    return TrainingState(state.epoch, vectors, outputs, key, state.generator_position, list(state.losses))


@pytest.mark.parametrize("skip_gram", [True, False])
def test_a_resumed_training_ends_with_the_same_bytes(corpus: Path, skip_gram: bool) -> None:
    """After every epoch, the last one too; from a copy of the state, as from disk."""
    settings, sentences = replace(SETTINGS, skip_gram=skip_gram), [corpus.read_text().split()]
    states: list[TrainingState] = []
    begun: list[int] = []
    whole = train_word2vec(
        str(corpus),
        settings,
        sentences=sentences,
        on_start=lambda n_tokens, _: begun.append(n_tokens),
        on_epoch=lambda state: states.append(copy(state)),
    )
    assert [state.epoch for state in states] == [1, 2, 3]
    assert begun == [len(corpus.read_text().split())]
    for state in states:
        later: list[TrainingState] = []
        resumed = train_word2vec(str(corpus), settings, sentences=sentences, resume=state, on_epoch=later.append)
        assert [one.epoch for one in later] == [1, 2, 3][state.epoch :]
        assert resumed.space.vectors.tobytes() == whole.space.vectors.tobytes()
        assert resumed.losses == whole.losses and len(whole.losses) == 3
    # The state is needed: with another the bytes are others, so this test can fail.
    broken = replace(states[0], output_vectors=np.zeros_like(states[0].output_vectors), losses=[])
    other = train_word2vec(str(corpus), settings, sentences=sentences, resume=broken)
    assert other.space.vectors.tobytes() != whole.space.vectors.tobytes()


def test_displacement_is_measured_from_gensims_own_start() -> None:
    from gensim.models.keyedvectors import prep_vectors

    start = prep_vectors((9_000, 7), seed=2**32 - 1)  # more rows than are drawn at a time
    moved = start.copy()
    moved[5] *= 3
    found = displacement(moved, 2**33 - 1)
    assert found[5] == pytest.approx(2, rel=1e-6) and np.count_nonzero(found) == 1
