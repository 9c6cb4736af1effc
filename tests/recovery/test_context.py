"""Decoding by context: against the sum over all texts, in known limits, and with what must not matter."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

from lexveil.evaluation.kneser_ney import KneserNey, train
from lexveil.evaluation.language_model import NgramModel
from lexveil.mechanisms.tem import Tem
from lexveil.recovery import context
from lexveil.recovery.adversary import TableAdversary
from lexveil.recovery.context import NOT_CERTAIN, ContextReader, Tokens

WORDS = ["the", "cat", "dog", "sat", "ran", "."]
TOKENS = [["cat"], ["dog"], ["sat"], ["ran"], ["cat", "sat"], ["mouse"]]  # the last is unknown to the model
PRIOR = np.array([0.3, 0.1, 0.2, 0.15, 0.05, 0.2])


def model() -> NgramModel:
    sentences = [[0, 1, 3, 5], [0, 2, 4, 5], [0, 1, 3, 5], [0, 2, 4, 0, 1, 5]]
    ids = np.array([word for one in sentences for word in one])
    return NgramModel(train(ids, np.cumsum([0, *map(len, sentences)]), len(WORDS)), WORDS)


def reader(weight: float) -> ContextReader:
    vectors = np.random.default_rng(3).normal(size=(len(TOKENS), 3)).astype(np.float32)
    return ContextReader(TableAdversary(Tem(vectors), PRIOR), PRIOR, model(), TOKENS, weight)


def tokens(made: ContextReader, text: list[int | str | None], epsilon: float = 1.0) -> Tokens:
    """One text of outputs (numbers), certain words, and positions of which nothing is known."""
    first, last = np.full(len(text), NOT_CERTAIN), np.full(len(text), NOT_CERTAIN)
    outputs = np.array([one if isinstance(one, int) else -1 for one in text])
    at = [place for place, one in enumerate(text) if isinstance(one, str)]
    first[at], last[at] = made.certain([text[place] for place in at])  # type: ignore[misc]
    return Tokens(np.zeros(len(text), dtype=np.int64), outputs, np.full(len(text), epsilon), first, last)


@cache
def plain_bigram(first: int | None, second: int) -> float:
    """p_2, or p_1 where no word comes before, by the code of the whole model with its lower orders alone."""
    kn = model().model
    part = KneserNey(kn.n_words, kn.orders[: 1 if first is None else 2])
    text = [second] if first in (None, kn.n_words + 2) else [first, second]
    return float(np.exp(part.log_probability(np.array(text), np.array([0, len(text)]))[len(text) - 1]))


def test_bigrams_are_those_of_the_model() -> None:
    kn = model().model
    pairs = list(itertools.product([*range(kn.n_words + 1), kn.n_words + 2], range(kn.n_words + 1)))
    got = kn.bigrams().probability(*np.array(pairs).T)
    np.testing.assert_allclose(got, [plain_bigram(*pair) for pair in pairs], rtol=1e-12)


def brute_force(made: ContextReader, text: list[int | str | None], epsilon: float, weight: float) -> list[int]:
    """The likeliest token at each position, by adding up the probabilities of all texts there could be."""
    kn, known = made.model.model, {word: number for number, word in enumerate(WORDS)}
    unknown = kn.n_words
    law = np.exp(made.adversary.mechanism.log_pmf(np.arange(6), np.full(6, epsilon)))  # type: ignore[attr-defined]
    numbers = [[known.get(word, unknown) for word in words] for words in TOKENS]
    marginal = np.zeros((len(text), len(TOKENS)))
    for chosen in itertools.product(*(range(6) if isinstance(one, int) else [one] for one in text)):
        p, before = 1.0, kn.n_words + 2
        for seen, one in zip(text, chosen, strict=True):
            if one is None:
                before = None
                continue
            own = [known.get(one, unknown)] if isinstance(one, str) else numbers[one]
            alone = plain_bigram(None, own[0]) if isinstance(one, str) else PRIOR[one]
            follows = alone
            if before is not None:
                inner = math.prod(plain_bigram(*pair) for pair in itertools.pairwise(own))
                follows = weight * plain_bigram(before, own[0]) * inner + (1 - weight) * alone
            p *= follows * (law[one, seen] if isinstance(seen, int) else 1.0)
            before = kn.n_words + 2 if one == "." else own[-1]
        for place, one in enumerate(chosen):
            if isinstance(one, int):
                marginal[place, one] += p
    return [int(marginal[place].argmax()) for place, one in enumerate(text) if isinstance(one, int)]


TEXTS: list[list[int | str | None]] = [
    ["the", 1, 3, "."],
    [0, 2, 1, 4],
    ["the", 0, ".", "the", 5, None, 2],
    [None, 4, 4, "sat"],
    [3],
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("weight", [0.5, 0.9])
def test_guesses_have_the_largest_marginal_of_all_texts(
    text: list[int | str | None], epsilon: float, weight: float
) -> None:
    made = reader(weight)
    assert made.guess(tokens(made, text, epsilon)).by_context.tolist() == brute_force(made, text, epsilon, weight)


def test_some_of_them_are_others_than_by_the_word() -> None:
    made = reader(0.5)
    guesses = [made.guess(tokens(made, text, 0.3)) for text in TEXTS]
    assert any(one.by_context.tolist() != one.by_word.tolist() for one in guesses)


def test_without_the_model_the_guesses_are_those_by_the_word() -> None:
    made, rng = reader(0.0), np.random.default_rng(5)
    guesses = made.guess(tokens(made, rng.integers(0, 6, 500).tolist()))
    assert guesses.by_context.tolist() == guesses.by_word.tolist()
    assert set(guesses.without_output.tolist()) == {0}  # the most frequent


def test_without_output_certain_neighbours_decide() -> None:
    """After "the", before "sat" comes the cat, before "ran" the dog, whatever came out."""
    made = reader(1.0)
    for word, guess in (("sat", 0), ("ran", 1)):
        for output in range(6):
            assert made.guess(tokens(made, ["the", output, word])).without_output.tolist() == [guess]


def test_how_texts_are_cut_into_parts_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    made, rng = reader(0.5), np.random.default_rng(7)
    n, sizes = 400, rng.integers(1, 9, 80)
    outputs = np.where(rng.random(n) < 0.8, rng.integers(0, 6, n), -1)
    certain = np.where((outputs < 0) & (rng.random(n) < 0.5), rng.integers(0, 5, n), NOT_CERTAIN)
    text_of = np.repeat(np.arange(80), sizes)[:n]
    given = Tokens(text_of, outputs, np.ones(n), certain, certain).part(0, len(text_of))
    whole = made.guess(given)
    monkeypatch.setattr(context, "POSITIONS", 16)
    parts = made.guess(given)
    assert len(whole.by_context) == (given.outputs >= 0).sum() > 200
    for one, other in (
        (whole.by_word, parts.by_word),
        (whole.by_context, parts.by_context),
        (whole.without_output, parts.without_output),
    ):
        assert one.tolist() == other.tolist()


def test_no_text() -> None:
    none = np.empty(0, dtype=np.int64)
    made = reader(0.5).guess(Tokens(none, none, np.empty(0), none, none))
    assert len(made.by_word) == len(made.by_context) == len(made.without_output) == 0
