"""Training, with a base or without: the same bytes twice, in any process, interrupted or not; its
loss by hand."""

import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lexveil.base.errors import RequestError
from lexveil.core.embeddings.base import Base, start
from lexveil.core.embeddings.intrinsic_evaluation import by_frequency
from lexveil.core.embeddings.training import (
    Probe,
    TrainingState,
    Word2VecSettings,
    displacement,
    train_word2vec,
)
from lexveil.core.embeddings.word_space import WordSpace

SETTINGS = Word2VecSettings(
    dimensions=8, window=2, min_count=2, epochs=3, negative=2, skip_gram=True, workers=1, seed=3
)


@pytest.fixture
def corpus(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "corpus.txt"
    lines = (" ".join(f"w{i}" for i in rng.zipf(1.5, 12) % 50) for _ in range(400))
    file.write_text("\n".join(lines) + "\nnew_york once\n")
    return file


def test_same_bytes_whatever_the_hash_seed(corpus, tmp_path):
    """Python randomises string hashes per process; the vectors must not notice."""
    program = (
        "import sys, numpy as np; from lexveil.core.embeddings.training import Word2VecSettings, "
        "train_word2vec; "
        f"np.save(sys.argv[2], train_word2vec(sys.argv[1], {SETTINGS!r}).space.vectors)"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program, str(corpus), str(tmp_path / f"{seed}.npy")]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."})
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "2.npy").read_bytes()


def test_vocabulary_counts_losses_and_workers(corpus):
    sentences = [line.split() for line in corpus.read_text().splitlines()]
    trained = train_word2vec(str(corpus), replace(SETTINGS, epochs=20), sentences=sentences)
    assert "once" not in trained.space.tokens  # rarer than min_count
    words = corpus.read_text().split()
    assert trained.space.counts.tolist() == [words.count(token) for token in trained.space.tokens]
    # before training, with two words drawn as noise
    assert trained.losses[-1] < trained.losses[0] < 3 * np.log(2)
    two = train_word2vec(str(corpus), replace(SETTINGS, workers=2))
    assert two.losses == [None, None, None] and np.isfinite(two.space.vectors).all()
    assert (displacement(two.space.vectors, 3) > 0).all()  # both halves of the file were read
    with pytest.raises(RequestError, match=r"no token occurs 100000 times.*min_count"):
        train_word2vec(str(corpus), replace(SETTINGS, min_count=100_000))


def copy(state):
    """The arrays belong to gensim, which goes on with them."""
    arrays = (array.copy() for array in (state.vectors, state.output_vectors, state.generator_key))
    vectors, outputs, key = arrays
    return TrainingState(
        state.epoch, vectors, outputs, key, state.generator_position, list(state.losses)
    )


def test_displacement_is_measured_from_gensims_own_start():
    from gensim.models.keyedvectors import prep_vectors

    start = prep_vectors((9_000, 7), seed=2**32 - 1)  # more rows than are drawn at a time
    moved = start.copy()
    moved[5] *= 3
    found = displacement(moved, 2**33 - 1)
    assert found[5] == pytest.approx(2, rel=1e-6) and np.count_nonzero(found) == 1


@pytest.mark.parametrize("skip_gram", [True, False])
def test_loss_by_hand(skip_gram):
    rng = np.random.default_rng(1)
    vectors, outputs = rng.normal(size=(2, 9, 4)).astype(np.float32)
    n = 2500  # more than are measured at a time
    inputs = rng.integers(0, 9, size=(n, 1 if skip_gram else 6))
    if not skip_gram:
        inputs[rng.random(inputs.shape) < 0.4] = -1
        inputs[:, 0] = 3
    probe = Probe(inputs, rng.integers(0, 9, size=n), rng.integers(0, 9, size=(n, 3)))
    expected = 0.0
    for around, target, noise in zip(inputs, probe.targets, probe.noise, strict=True):
        h = np.mean([vectors[i] for i in around if i >= 0], axis=0)
        scores = [-h @ outputs[target], *(h @ outputs[word] for word in noise if word != target)]
        expected += np.log1p(np.exp(scores)).sum()
    assert probe.loss(vectors, outputs) == pytest.approx(expected / n, rel=1e-6)
    assert Probe(inputs[:0], probe.targets[:0], probe.noise[:0]).loss(vectors, outputs) is None


WITH_BASE = replace(SETTINGS, dimensions=4)


def space(**vectors):
    """Tokens with counts 100, 99, …"""
    counts = np.arange(100, 100 - len(vectors), -1)
    return WordSpace(list(vectors), np.array(list(vectors.values()), dtype=np.float32), counts)


BASE = space(new=[1, 0, 0, 0], york=[0, 1, 0, 0], red_tape=[0, 0, 1, 0], tea=[0, 0, 0, 1])


@pytest.fixture
def few_words(tmp_path):
    file = tmp_path / "few_words.txt"
    file.write_text("new york new_york tea unknown new_unknown tea\n" * 40)
    return file


def test_where_vectors_begin():
    """Known, composed of known words, with an unknown word, unknown."""
    drawn = np.full((4, 4), 0.5, dtype=np.float32)
    begun = start(["york", "new_york", "new_unknown", "unknown"], drawn, Base(BASE, keep=True))
    assert begun.vectors.tolist() == [[0, 1, 0, 0], [0.5, 0.5, 0, 0], [0.5] * 4, [0.5] * 4]
    assert begun.is_known.tolist() == [True, False, False, False]
    assert begun.is_composed.tolist() == [False, True, False, False]
    assert begun.is_random.tolist() == [False, False, True, True]
    assert (drawn == 0.5).all()
    with pytest.raises(ValueError, match="have 3 dimensions, the base"):
        start(["york"], drawn[:1, :3], Base(BASE, keep=True))


@pytest.mark.parametrize("keep", [True, False])
def test_the_base_keeps_its_vectors_or_adapts(few_words, keep):
    trained = train_word2vec(str(few_words), WITH_BASE, base=Base(BASE, keep))
    row_of = {token: row for row, token in enumerate(trained.space.tokens)}
    assert set(row_of) == {*BASE.tokens, "new_york", "unknown", "new_unknown"}
    same = {
        token: trained.space.vectors[row_of[token]].tobytes() == BASE.vectors[row].tobytes()
        for row, token in enumerate(BASE.tokens)
    }
    # the last is not in the corpus
    assert same == {"new": keep, "york": keep, "tea": keep, "red_tape": True}
    # it is trained in any case
    assert not np.array_equal(trained.space.vectors[row_of["new_york"]], [0.5, 0.5, 0, 0])
    assert trained.began == {"of_base": 3, "composed": 1, "random": 2, "not_trained": 1}
    # Only what began at random can be far from a random start.
    assert {token for token, row in row_of.items() if not np.isnan(trained.moved[row])} == {
        "unknown",
        "new_unknown",
    }
    figures = by_frequency(trained.space, trained.moved)
    assert figures["hardly_moved"] is not None and figures["bands"][-1]["hardly_moved"] in (
        None,
        0.0,
        0.5,
        1.0,
    )


@pytest.mark.parametrize("skip_gram", [True, False])
@pytest.mark.parametrize("keep", [None, True, False], ids=["no base", "kept base", "adapted base"])
def test_a_resumed_training_ends_with_the_same_bytes(corpus, few_words, skip_gram, keep):
    """Training is resumed after every epoch, even the last one, from a copy of the state, as from
    disk.
    """
    file, base = (corpus, None) if keep is None else (few_words, Base(BASE, keep))
    settings = replace(WITH_BASE if base else SETTINGS, skip_gram=skip_gram)
    words = file.read_text().split()
    train = partial(train_word2vec, str(file), base=base, sentences=[words])
    states = list[TrainingState]()
    begun = list[int]()
    told = {
        "on_start": lambda n_tokens, _: begun.append(n_tokens),
        "on_epoch": lambda one: states.append(copy(one)),
    }
    whole = train(settings, **told)
    assert [state.epoch for state in states] == [1, 2, 3] and begun == [len(words)]
    for state in states:
        later = list[TrainingState]()
        resumed = train(settings, resume=state, on_epoch=later.append)
        assert [one.epoch for one in later] == [1, 2, 3][state.epoch :]
        assert resumed.space.vectors.tobytes() == whole.space.vectors.tobytes()
        assert resumed.space.tokens == whole.space.tokens
        assert resumed.losses == whole.losses and len(whole.losses) == 3
    # State and seed are needed: with others the bytes are others, so this test can fail.
    broken = replace(states[0], output_vectors=np.zeros_like(states[0].output_vectors), losses=[])
    for other in (train(settings, resume=broken), train(replace(settings, seed=4))):
        assert other.space.vectors.tobytes() != whole.space.vectors.tobytes()
