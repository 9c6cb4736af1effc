"""The contextual adversary against the sum over all texts, and in known limits."""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple
from functools import cache

import numpy as np
import pytest

from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.language_models.kneser_ney import KneserNey, train
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.mechanisms.tem import Tem
from lexveil.readers import context
from lexveil.readers.context import ContextualAdversary
from lexveil.readers.public_texts import REACH, TokenBigrams
from tests.recovery.oracles import TableAdversary, tokens

WORDS = ["the", "cat", "dog", "sat", "ran", "."]
# the last is unknown to the model
TOKENS = [["cat"], ["dog"], ["sat"], ["ran"], ["cat", "sat"], ["mouse"]]
PRIOR = np.array([0.3, 0.1, 0.2, 0.15, 0.05, 0.2])


@cache
def model():
    sentences = [[0, 1, 3, 5], [0, 2, 4, 5], [0, 1, 3, 5], [0, 2, 4, 0, 1, 5]]
    ids = np.array([word for sentence in sentences for word in sentence])
    return NgramModel(train(ids, np.cumsum([0, *map(len, sentences)]), len(WORDS)), WORDS)


def by_ngrams(weight):
    vectors = np.random.default_rng(3).normal(size=(len(TOKENS), 3)).astype(np.float32)
    return ContextualAdversary(TableAdversary(Tem(vectors), PRIOR), PRIOR, model(), TOKENS, weight)


def random_texts(n, n_outputs):
    rng = np.random.default_rng(9)
    symbols = [*range(n_outputs), "the", "cat", ".", None]
    return [
        [symbols[number] for number in rng.integers(0, len(symbols), rng.integers(0, 9))]
        for _ in range(n)
    ]


@cache
def plain_bigram(first, second):
    """p_2, or p_1 where no word comes before, by the code of the whole model with its lower orders
    alone."""
    kn = model().model
    part = KneserNey(kn.n_words, kn.orders[: 1 if first is None else 2])
    text = [second] if first in (None, kn.n_words + 2) else [first, second]
    return float(
        np.exp(part.log_probability(np.array(text), np.array([0, len(text)]))[len(text) - 1])
    )


def sum_over_texts(adversary, text, epsilon):
    """The likeliest token at each position, by adding up the probabilities of all texts there could
    be."""
    kn = model().model
    known = {word: number for number, word in enumerate(WORDS)}
    channel = np.exp(adversary.adversary.mechanism.log_pmf(np.arange(6), np.full(6, epsilon)))
    numbers = [[known.get(word, kn.n_words) for word in words] for words in TOKENS]
    marginal = np.zeros((len(text), len(TOKENS)))
    for chosen in itertools.product(
        *(range(6) if isinstance(seen, int) else [seen] for seen in text)
    ):
        p = 1.0
        before = kn.n_words + 2
        for seen, token in zip(text, chosen, strict=True):
            if token is None:
                before = None
                continue
            words = [known.get(token, kn.n_words)] if isinstance(token, str) else numbers[token]
            follows = alone = (
                plain_bigram(None, words[0]) if isinstance(token, str) else PRIOR[token]
            )
            if before is not None:
                inner = math.prod(plain_bigram(*pair) for pair in itertools.pairwise(words))
                follows = (
                    adversary.weight * plain_bigram(before, words[0]) * inner
                    + (1 - adversary.weight) * alone
                )
            p *= follows * (channel[token, seen] if isinstance(seen, int) else 1.0)
            before = kn.n_words + 2 if token == "." else words[-1]
        for place, token in enumerate(chosen):
            if isinstance(token, int):
                marginal[place, token] += p
    return [
        int(marginal[place].argmax()) for place, seen in enumerate(text) if isinstance(seen, int)
    ]


TEXTS = [
    ["the", 1, 3, "."],
    [0, 2, 1, 4],
    ["the", 0, ".", "the", 5, None, 2],
    [None, 4, 4, "sat"],
    [3],
]


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("weight", [0.5, 0.9])
def test_guesses_by_ngrams_have_the_largest_marginal_of_all_texts(epsilon, weight):
    adversary = by_ngrams(weight)
    guesses = [adversary.guess(tokens([text], epsilon)) for text in TEXTS]
    for text, found in zip(TEXTS, guesses, strict=True):
        assert found.by_context.tolist() == sum_over_texts(adversary, text, epsilon)
    assert epsilon > 1 or any(
        found.by_context.tolist() != found.by_word.tolist() for found in guesses
    )


def test_public_texts_go_on_as_the_counts_say_and_the_reader_has_these_counts():
    """After token 0 came token 1 three times and token 2 once: n = 4, t = 2; after token 2
    nothing."""
    bigrams = Bigrams.of(np.array([0, 0, 1]), np.array([1, 2, 0]), np.array([3, 1, 5]), 3)
    assert bigrams.draw(np.array([2, 2]), np.random.default_rng(1)).tolist() == [-1, -1]
    texts = TokenBigrams(["a", "b", "c"], np.array([6, 3, 1]), bigrams)
    single = texts.single
    p = texts.bigrams().probability
    expected = [
        4 / 6 * seen + 2 / 6 * single
        for seen, single in zip((0, 3 / 4, 1 / 4), single, strict=True)
    ]
    assert p(np.array([0]), np.arange(3)) == pytest.approx(expected)
    assert p(np.array([2]), np.arange(3)) == pytest.approx(single)
    drawn = texts.around(np.zeros(40_000, dtype=np.int64), np.random.default_rng(1))
    after = np.bincount(drawn[:, REACH + 1], minlength=3) / len(drawn)
    assert after == pytest.approx(expected, abs=0.0125)  # 5 standard errors
    # Before token 0 came token 1 alone, five times: n = 5, t = 1.
    before = np.bincount(drawn[:, REACH - 1], minlength=3) / len(drawn)
    assert before == pytest.approx(
        [single[0] / 6, 5 / 6 + single[1] / 6, single[2] / 6], abs=0.0125
    )


def test_without_output_certain_neighbours_decide():
    """After "the", the guess before "sat" is the cat, and before "ran" the dog, whatever
    came out.
    """
    for word, guess in (("sat", 0), ("ran", 1)):
        found = by_ngrams(1.0).guess(tokens([["the", output, word] for output in range(6)]))
        assert found.without_output.tolist() == [guess] * 6


def lists(guesses):
    return [answer.tolist() for answer in astuple(guesses)[:3]]


def test_without_the_model_the_guesses_are_unigram_and_cuts_do_not_show(
    monkeypatch,
):
    seen = tokens(random_texts(80, 6))
    by_word, by_context, without_output = lists(by_ngrams(0.0).guess(seen))
    assert by_context == by_word and len(set(by_word)) > 2
    assert set(without_output) == {0}  # the most frequent
    whole = lists(by_ngrams(0.5).guess(seen))
    monkeypatch.setattr(context, "POSITIONS", 16)
    assert lists(by_ngrams(0.5).guess(seen)) == whole
    for nothing in ([], [["the", None]]):
        assert lists(by_ngrams(0.5).guess(tokens(nothing))) == [[], [], []]
