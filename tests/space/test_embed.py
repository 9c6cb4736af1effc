"""Training: the same bytes twice, in any process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tasks.errors import RequestError
from tasks.space.embed import train_word2vec
from tasks.space.word_space import WordSpace

SETTINGS = dict(dimensions=8, window=2, min_count=2, epochs=3, negative=2, skip_gram=True, workers=1, seed=3)


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
        "import sys, numpy as np; from tasks.space.embed import train_word2vec; "
        f"np.save(sys.argv[2], train_word2vec(sys.argv[1], **{SETTINGS!r}).vectors)"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program, str(corpus), str(tmp_path / f"{seed}.npy")]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."})
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "2.npy").read_bytes()


def test_vocabulary_counts_and_seed(corpus: Path) -> None:
    space = train_word2vec(str(corpus), **SETTINGS)
    assert "once" not in space.tokens  # rarer than min_count
    words = corpus.read_text().split()
    assert space.counts.tolist() == [words.count(token) for token in space.tokens]
    assert sorted(space.counts.tolist(), reverse=True) == space.counts.tolist()
    other = train_word2vec(str(corpus), **(SETTINGS | {"seed": 4}))
    assert not np.array_equal(space.vectors, other.vectors)


def test_epochs_are_announced(corpus: Path) -> None:
    seen: list[int] = []
    train_word2vec(str(corpus), **SETTINGS, on_epoch=seen.append)
    assert seen == [1, 2, 3]


def test_nothing_to_train(corpus: Path) -> None:
    with pytest.raises(RequestError, match=r"no token occurs 100000 times.*min_count"):
        train_word2vec(str(corpus), **(SETTINGS | {"min_count": 100_000}))


def test_back_into_gensim() -> None:
    space = WordSpace(["a", "new_york"], np.eye(2, dtype=np.float32), np.array([5, 2]))
    keyed = space.to_keyed_vectors()
    assert keyed["new_york"].tolist() == [0.0, 1.0]
    assert keyed.get_vecattr("a", "count") == 5
