"""Vectors of sentences: by hand, as a function of the sentence alone, and their purposes."""

import numpy as np
import pytest

from lexveil.core.embeddings.purposes import STEP, Purpose
from lexveil.core.embeddings.sentences import SMOOTHING, SentenceSpace, Units, token_weights
from lexveil.core.embeddings.word_space import WordSpace

TOKENS = ["the", "good", "bad", "film", "new_york"]
COUNTS = np.array([6000, 30, 20, 40, 10])
VECTORS = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
SPACE = WordSpace(TOKENS, VECTORS, COUNTS)
SENTENCES = [[0, 1, 3], [0, 2, 3], [4, 3], [1, 4], [0, 0, 2]]
GOOD = Purpose("sentiment", 3.0, {"good": 1.0, "bad": -1.0}, "0" * 64, is_public=True)


def units(sentences):
    rows = np.array([row for rows in sentences for row in rows], dtype=np.int64)
    sizes = [len(rows) for rows in sentences]
    return Units.of(rows, np.repeat(np.arange(len(sizes)), sizes), len(sizes))


def fitted(sentences=SENTENCES):
    return SentenceSpace.fitted(SPACE, units(sentences))


def by_hand(sentence, component):
    weights = SMOOTHING / (SMOOTHING + COUNTS / COUNTS.sum())
    total = sum(weights[row] * VECTORS[row].astype(np.float64) for row in sentence if row >= 0)
    total = total - (total @ component) * component
    return total / np.linalg.norm(total)


def test_weighs_tokens_by_frequency():
    """The last token is 10 of 10,000 tokens: its frequency is a, so it weighs half."""
    weights = token_weights(np.array([9990, 10]))
    assert weights.tolist() == pytest.approx([1e-3 / 1.0, 0.5])


def test_vectors_by_hand():
    space = fitted()
    expected = [by_hand(sentence, space.component) for sentence in SENTENCES]
    assert np.allclose(space.embed(units(SENTENCES)), expected, atol=2e-6)


def test_the_direction_is_the_first_of_the_mean_vectors():
    weights = token_weights(COUNTS)
    means = [
        np.mean([weights[row] * VECTORS[row].astype(np.float64) for row in rows], axis=0)
        for rows in SENTENCES
    ]
    first = np.linalg.svd(np.array(means))[2][0]
    assert abs(first @ fitted().component) == pytest.approx(1.0)
    assert fitted().component[np.argmax(np.abs(fitted().component))] > 0


def test_unknown_tokens_count_for_nothing_and_no_known_one_is_zero():
    space = fitted()
    found = space.embed(units([[-1, 0, 1, -1, 3], [-1], []]))
    assert np.array_equal(found[0], space.embed(units([[0, 1, 3]]))[0])
    assert not found[1:].any()


def test_a_vector_is_a_function_of_the_sentence_alone():
    """Bit by bit the same by itself, among others, and among thousands of tokens."""
    space = fitted().with_purposes(TOKENS, [GOOD], units(SENTENCES))
    rng = np.random.default_rng(3)
    many = [rng.integers(-1, 5, size=rng.integers(0, 60)).tolist() for _ in range(500)]
    together = space.embed(units(many))
    each = [space.embed(units([sentence]))[0] for sentence in many]
    assert np.array_equal(together, each)
    order = rng.permutation(len(many))
    assert np.array_equal(space.embed(units([many[i] for i in order])), together[order])


def test_a_purpose_is_one_more_coordinate():
    bank = units(SENTENCES)
    plain = fitted()
    space = fitted().with_purposes(TOKENS, [GOOD], bank)
    found = space.embed(bank)
    assert np.array_equal(found[:, :4], plain.embed(bank))
    weights = token_weights(COUNTS)
    scores = np.array([0.0, 1.0, -1.0, 0.0, 0.0])
    means = np.array(
        [(weights[rows] * scores[rows]).sum() / weights[rows].sum() for rows in SENTENCES]
    )
    assert found[:, 4] == pytest.approx(3 * np.tanh(means / means.std()), abs=STEP)
    assert np.array_equal(found[:, 4], np.trunc(found[:, 4] / STEP) * STEP)


def test_nothing_is_farther_apart_than_the_diameter():
    """A purpose of weight 3 makes the diameter 2·√(1 + 9); the ends of its axis nearly reach the
    diameter.
    """
    assert fitted().diameter == 2.0
    space = fitted().with_purposes(TOKENS, [GOOD], units(SENTENCES))
    assert space.diameter == pytest.approx(2 * np.sqrt(10))
    vectors = space.embed(units([*SENTENCES, [1], [2], []])).astype(np.float64)
    assert np.linalg.norm(vectors, axis=1).max() <= space.radius


def test_a_purpose_that_tells_nothing_apart_is_refused():
    with pytest.raises(ValueError, match="sentiment"):
        fitted().with_purposes(TOKENS, [GOOD], units([[0], [3]]))
