"""Training that begins with a base: what stays, what moves, what is added, and the same bytes resumed or not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexveil.embeddings.base import Base, start
from lexveil.embeddings.intrinsic_evaluation import by_frequency
from lexveil.embeddings.training import TrainingState, Word2VecSettings, train_word2vec
from lexveil.embeddings.word_space import WordSpace
from tests.embeddings.test_embed import copy

SETTINGS = Word2VecSettings(
    dimensions=4, window=2, min_count=2, epochs=3, negative=2, skip_gram=True, workers=1, seed=3
)


def space(**vectors: list[float]) -> WordSpace:
    """Tokens with counts 100, 99, …"""
    counts = np.arange(100, 100 - len(vectors), -1)
    return WordSpace(list(vectors), np.array(list(vectors.values()), dtype=np.float32), counts)


BASE = space(new=[1, 0, 0, 0], york=[0, 1, 0, 0], red_tape=[0, 0, 1, 0], tea=[0, 0, 0, 1])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("new york new_york tea unknown new_unknown tea\n" * 40)
    return file


def test_where_vectors_begin() -> None:
    """Known, composed of known words, with an unknown word, unknown."""
    drawn = np.full((4, 4), 0.5, dtype=np.float32)
    begun = start(["york", "new_york", "new_unknown", "unknown"], drawn, Base(BASE, keep=True))
    assert begun.vectors.tolist() == [[0, 1, 0, 0], [0.5, 0.5, 0, 0], [0.5] * 4, [0.5] * 4]
    assert begun.is_known.tolist() == [True, False, False, False]
    assert begun.is_composed.tolist() == [False, True, False, False]
    assert begun.is_random.tolist() == [False, False, True, True]
    assert (drawn == 0.5).all()
    with pytest.raises(ValueError, match="3 dimensions, of the base 4"):
        start(["york"], drawn[:1, :3], Base(BASE, keep=True))


@pytest.mark.parametrize("keep", [True, False])
def test_the_base_keeps_its_vectors_or_adapts(corpus: Path, keep: bool) -> None:
    trained = train_word2vec(str(corpus), SETTINGS, base=Base(BASE, keep))
    row_of = {token: row for row, token in enumerate(trained.space.tokens)}
    assert set(row_of) == {*BASE.tokens, "new_york", "unknown", "new_unknown"}
    same = {
        token: trained.space.vectors[row_of[token]].tobytes() == BASE.vectors[row].tobytes()
        for row, token in enumerate(BASE.tokens)
    }
    assert same == {"new": keep, "york": keep, "tea": keep, "red_tape": True}  # the last is not in the corpus
    assert not np.array_equal(trained.space.vectors[row_of["new_york"]], [0.5, 0.5, 0, 0])  # it is trained in any case
    assert trained.began == {"of_base": 3, "composed": 1, "random": 2, "not_trained": 1}
    # Only what began at random can be far from a random start.
    assert {token for token, row in row_of.items() if not np.isnan(trained.moved[row])} == {"unknown", "new_unknown"}
    figures = by_frequency(trained.space, trained.moved)
    assert figures["hardly_moved"] is not None and figures["bands"][-1]["hardly_moved"] in (None, 0.0, 0.5, 1.0)


@pytest.mark.parametrize("keep", [True, False])
def test_same_bytes_resumed_or_not(corpus: Path, keep: bool) -> None:
    base, states = Base(BASE, keep), list[TrainingState]()
    whole = train_word2vec(str(corpus), SETTINGS, base=base, on_epoch=lambda state: states.append(copy(state)))
    resumed = train_word2vec(str(corpus), SETTINGS, base=base, resume=states[0])
    assert resumed.space.vectors.tobytes() == whole.space.vectors.tobytes()
    assert resumed.space.tokens == whole.space.tokens
    other = train_word2vec(str(corpus), replace(SETTINGS, seed=4), base=base)
    assert other.space.vectors.tobytes() != whole.space.vectors.tobytes()
