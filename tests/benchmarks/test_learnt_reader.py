"""The learnt reader keeps the order of the channel while its weights are 0, and learns what the
words around say.
"""

import numpy as np
import pytest

from benchmarks.learnt_reader import (
    OFFSETS,
    Evidence,
    Weights,
    Words,
    gradient,
    guesses,
    log_odds,
    loss,
    scores,
    trained,
)
from benchmarks.strongest_reader import interval, repeats

N_WORDS = 48
N_CANDIDATES = 4
TOPICS = 4


def toy(n, seed):
    """Texts of one topic each: the channel says nothing, and a candidate is of another topic than
    the outputs around it unless it is the true word.
    """
    rng = np.random.default_rng(seed)
    topic_of_word = np.arange(N_WORDS) % TOPICS
    vectors = np.eye(TOPICS, 8)[topic_of_word] + rng.normal(0, 0.05, (N_WORDS, 8))
    words = Words(vectors.astype(np.float32), np.zeros(N_WORDS, np.float32))
    topics = rng.integers(TOPICS, size=n // 10)[np.arange(n) // 10]
    of_topic = rng.integers(N_WORDS // TOPICS, size=(2, n)) * TOPICS
    true, outputs = of_topic + topics
    others = (topics[:, None] + 1 + np.arange(N_CANDIDATES - 1)) % TOPICS
    ids = np.column_stack([true, others + TOPICS * (true[:, None] // TOPICS)])
    ids = rng.permuted(ids, axis=1)
    text_of = np.arange(n) // 10
    around = np.arange(n)[:, None] + OFFSETS
    inside = (around >= 0) & (around < n)
    around[~inside] = 0
    around = np.where(inside & (text_of[around] == text_of[:, None]), around, -1)
    flat = np.zeros((n, N_CANDIDATES), np.float32)
    evidence = Evidence(
        ids=ids,
        channel=flat,
        context=flat,
        repeated=flat,
        kept=np.zeros(around.shape, np.int64),
        around=around,
        outputs=outputs,
        means=words.vectors[outputs],
        topic=np.zeros((n, 8), np.float32),
        text_of=text_of,
    )
    return evidence, words, true


def test_weights_of_zero_leave_the_order_of_the_channel():
    evidence, words, _ = toy(200, seed=1)
    channel = np.random.default_rng(2).normal(size=evidence.ids.shape).astype(np.float32)
    channel[:, 3] = -np.inf  # no candidate
    evidence = evidence._replace(channel=channel)
    weights = Weights.shaped(words)
    rows = np.arange(200)
    assert not log_odds(evidence, rows, words, weights).any()
    assert np.array_equal(scores(evidence, rows, words, weights), channel)
    best = np.take_along_axis(evidence.ids, channel.argmax(axis=1)[:, None], axis=1)[:, 0]
    assert np.array_equal(guesses(evidence, words, weights), best)


def test_a_reader_learns_what_the_words_around_say():
    """A trained reader names most of 2,000 words that it has not seen; an untrained reader names a
    quarter of them, ± 4 points, by chance.
    """
    evidence, words, true = toy(8_000, seed=3)
    rng = np.random.default_rng(4)
    weights = trained(evidence, true, words, Weights.begun(words, rng), rng, epochs=4)
    held_out, words, true = toy(2_000, seed=5)
    assert (guesses(held_out, words, weights) == true).mean() > 0.8
    assert (guesses(held_out, words, Weights.shaped(words)) == true).mean() < 0.3


@pytest.mark.parametrize("name", Weights._fields)
def test_the_gradient_is_that_of_the_loss(name):
    evidence, words, true = toy(40, seed=6)
    rng = np.random.default_rng(7)
    figures = rng.normal(size=evidence.ids.shape)
    kept = rng.integers(3, size=evidence.kept.shape)
    evidence = evidence._replace(context=figures, repeated=abs(figures), kept=kept)
    weights = Weights(*(rng.normal(0, 0.1, each.shape) for each in Weights.shaped(words)))
    slope = getattr(gradient(evidence, np.arange(40), true, words, weights), name)
    place = np.unravel_index(np.abs(slope).argmax(), slope.shape)
    values = []
    for step in (-1e-4, 1e-4):
        moved = getattr(weights, name).copy()
        moved[place] += step
        values.append(loss(evidence, np.arange(40), true, words, weights._replace(**{name: moved})))
    assert slope[place] == pytest.approx((values[1] - values[0]) / 2e-4, rel=0.05)


def test_joined_evidence_sees_its_own_texts():
    evidence, _, _ = toy(30, seed=8)
    joined = Evidence.joined([evidence, evidence])
    assert np.array_equal(joined.text_of[30:], evidence.text_of + 3)
    seen = joined.around[30:]
    assert np.array_equal(seen, np.where(evidence.around < 0, -1, evidence.around + 30))


def test_a_candidate_is_expected_elsewhere_in_its_text_alone():
    ids = np.array([[5, 7], [7, 9], [7, -1]])
    posterior = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0]])
    found = repeats(np.array([0, 0, 1]), ids, posterior)
    assert np.array_equal(found, [[0.0, 0.5], [0.25, 0.0], [0.0, 0.0]])


def test_an_interval_is_by_documents():
    """Ten texts of 100 words, all right or all wrong: as ten draws, not as 1,000."""
    text_of = np.repeat(np.arange(10), 100)
    mean, low, high = interval(text_of, np.repeat(np.arange(10) % 2, 100).astype(np.float64))
    assert mean == 0.5
    assert low == pytest.approx(0.2, abs=0.1)
    assert high == pytest.approx(0.8, abs=0.1)
