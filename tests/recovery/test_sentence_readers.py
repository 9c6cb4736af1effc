"""Readers of sentences: the channel against the exact law, and what is named by a posterior."""

import numpy as np
import pytest

from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.readers.sentences import Channel, named_words, posterior


def unit(n, seed):
    made = np.random.default_rng(seed).standard_normal((n, 6))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_the_channel_is_the_law():
    """The channel gives the sentences that came out the log probabilities of the law, for every
    query, in more than one block of queries.
    """
    draws = SentenceDraws(unit(50, 1), 1.0)
    queries = unit(150, 2)
    rows = np.array([3, 7, 3, 49])
    channel = Channel.of(draws, queries, rows, 8.0)
    log_p = draws.log_pmf_of(queries, np.full(len(queries), 8.0))
    assert np.allclose(channel.log_likelihood(rows), log_p[:, rows].sum(axis=1), atol=1e-2)
    assert np.allclose(channel.log_likelihood(rows[:1]), log_p[:, 3], atol=1e-2)


def test_names_the_words_of_the_likeliest_candidates():
    """By hand: tea is in candidates of .7, cup of .55, car of .25; blind, of 1/2, 1/2 and 1/4."""
    words = [{"tea", "cup"}, {"tea", "milk"}, {"car"}, {"cup"}]
    chances = np.array([0.5, 0.2, 0.25, 0.05])
    assert named_words(chances, words, 2) == {"tea", "cup"}
    assert named_words(chances, words, 3) == {"tea", "cup", "car"}
    even = np.full(4, 0.25)
    assert named_words(even, words, 3) == {"tea", "cup", "car"}
    assert named_words(even, words, 3, own={"milk"}) == {"tea", "cup", "milk"}


def test_a_posterior_survives_small_likelihoods():
    found = posterior(np.array([-5000.0, -5000.0 + np.log(3)]))
    assert found.tolist() == pytest.approx([0.25, 0.75])
