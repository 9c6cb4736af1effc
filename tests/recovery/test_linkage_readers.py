"""Linkage: candidates ranked by structure, by words alone, and by the exact channel."""

import numpy as np
import pytest

from lexveil.core.accounting.budgets import Action, Policy
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.text.encode import Lexicon, encode
from lexveil.readers.linkage import (
    DisclosedTexts,
    LinkageReaders,
    first_chance,
    like_length,
    n_unique,
    naive_similarities,
)
from lexveil.readers.unigram import build_adversary
from tests.recovery.oracles import TableAdversary
from tests.recovery.test_unigram import TOYS, random_prior, toy_vectors

LEXICON = Lexicon.build("word", ["cat", "dog", "fish", "sun", "moon"], None)
KEPT = Policy("keep", "keep", "sample")
PERTURBED = Policy("perturb", "keep", "sample")


def disclosed(texts, policy=KEPT):
    return DisclosedTexts.cut(texts, LEXICON, np.arange(len(LEXICON.tokens)), policy)


@pytest.mark.parametrize(
    "other, is_alike",
    [
        pytest.param("the dog and the moon.", True, id="other perturbed words"),
        pytest.param("The fish and the moon.", True, id="other capitals"),
        pytest.param("a dog and the moon.", False, id="another kept word"),
        pytest.param("the dog and the moon!", False, id="another kept mark"),
        pytest.param("the dog and the moon", False, id="one token less"),
        pytest.param("the dog and the zzzz.", False, id="an unknown word"),
        pytest.param("the and dog the moon.", False, id="another order"),
    ],
)
def test_structure_is_the_fates_and_the_kept_tokens(other, is_alike):
    keys = disclosed(["the cat and the sun.", other]).keys
    assert (keys[0] == keys[1]) == is_alike


def test_texts_of_one_structure_are_not_unique():
    assert n_unique(disclosed(["the cat", "the dog", "a cat", "cat cat", ""])) == 3


def test_perturbed_words_are_those_of_the_text():
    texts = disclosed(["the cat zzzz sun", "moon"])
    assert texts.perturbed(0).tolist() == [0, 3]
    assert texts.perturbed(1).tolist() == [4]


def test_candidates_of_like_length_hold_the_source_and_the_nearest():
    lengths = np.array([5, 9, 5, 6, 5, 20])
    assert like_length(lengths, 4, 2).tolist() == [0, 4]
    assert like_length(lengths, 3, 4).tolist() == [0, 2, 3, 4]
    assert like_length(lengths, 5, 100).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "scores, chance",
    [([1.0, 0.0], 1.0), ([1.0, 2.0], 0.0), ([1.0, 1.0, 0.0, 1.0], 1 / 3), ([0.0, 0.0], 0.5)],
)
def test_candidates_that_are_ranked_alike_share_the_first_place(scores, chance):
    assert first_chance(np.array(scores), 0) == pytest.approx(chance)


def test_words_that_few_candidates_have_tell_most():
    words, places = naive_similarities(
        ["the cat ran"], ["the cat sat", "the dog ran off", "ran the cat", "the the the"]
    )
    assert np.argmax(words.of(0)) == 2
    assert np.argmax(places.of(0)) == 0


@pytest.mark.parametrize("mechanism", TOYS, ids=lambda toy: f"{toy.name}-{toy.size}")
def test_log_likelihoods_are_those_of_the_closed_form(mechanism):
    """The log likelihoods are equal up to a constant per output, which cancels in pairs of words
    with one output.
    """
    rng = np.random.default_rng(3)
    first, second, outputs = rng.integers(mechanism.size, size=(3, 200))
    epsilon = rng.choice([0.2, 1.0, 5.0], 200)
    prior = random_prior(mechanism.size)
    adversary = build_adversary(mechanism, prior, (0.2, 5.0))
    table = TableAdversary(mechanism, prior)
    ours, exact = (
        each.log_likelihood(first, outputs, epsilon) - each.log_likelihood(second, outputs, epsilon)
        for each in (adversary, table)
    )
    np.testing.assert_allclose(ours, exact, rtol=0, atol=2e-3)  # 0.2 and 5 are rungs; 1 is between


def test_an_estimated_log_likelihood_is_the_joint_without_the_prior():
    mechanism = Madlib(toy_vectors())
    prior = random_prior(mechanism.size)
    adversary = build_adversary(mechanism, prior, (2.0, 2.0))
    outputs = np.arange(0, mechanism.size, 5)
    epsilon = np.full(len(outputs), 2.0)
    candidates = adversary.candidates(outputs, epsilon, 20)
    for column in range(1, 20):
        pair = [
            adversary.log_likelihood(candidates.ids[:, one], outputs, epsilon)
            + np.log(prior)[candidates.ids[:, one]]
            for one in (0, column)
        ]
        joint = candidates.log_joint[:, 0] - candidates.log_joint[:, column]
        np.testing.assert_allclose(pair[0] - pair[1], joint, rtol=0, atol=0.05)  # tabled distances


def readers_of(texts, outputs, policy=KEPT):
    """Readers of outputs that were made of the first texts, by a channel that hardly changes a
    word.
    """
    mechanism = next(toy for toy in TOYS if toy.name == "tem" and toy.size == 12)
    sources = np.arange(len(outputs))
    of_outputs = disclosed(outputs, policy)
    words = of_outputs.words[of_outputs.words >= 0]
    return LinkageReaders(
        candidates=disclosed(texts, policy),
        sources=sources,
        outputs=words,
        epsilon=np.full(len(words), 20.0),
        before=np.full(len(words), -1),
        similarities=naive_similarities(outputs, texts),
        adversary=build_adversary(mechanism, random_prior(12), (20.0, 20.0)),
    )


def test_each_reader_finds_what_it_can_see():
    texts = ["the cat", "the dog", "the sun", "a fish"]
    shares = readers_of(texts, ["the cat", "the moon"]).shares(4)
    # Three texts have the structure "the …": each is found by it with a chance of 1/3.
    assert shares["structure"] == pytest.approx(1 / 3)
    assert shares["likelihood"] >= 0.5


def test_a_unique_structure_is_found_whatever_comes_out():
    texts = ["the cat zzzz sun", "the dog", "a dog"]
    assert readers_of(texts, ["the fish zzzz moon"]).shares(3)["structure"] == 1
    assert readers_of(texts, ["the fish zzzz moon"]).shares(3)["likelihood"] == 1


def test_actions_are_told_apart():
    encoded = encode(["cat", "cat"], LEXICON)
    action = np.array([Action.PERTURBED.value, Action.SAMPLED.value], dtype=np.int8)
    keys = DisclosedTexts.of(encoded, action, np.zeros(2, dtype=np.int64)).keys
    assert keys[0] != keys[1]
