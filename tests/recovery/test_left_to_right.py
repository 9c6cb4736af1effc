"""Decoding from left to right by a language model: against one word after the other, in known limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lexveil.mechanisms.tem import Tem
from lexveil.recovery import left_to_right
from lexveil.recovery.adversary import Candidates, TableAdversary
from lexveil.recovery.left_to_right import LeftToRightReader, SeenTokens

NAMES = ["cat", "dog", "barked", "purred", "new york"]
PRIOR = np.array([0.4, 0.25, 0.15, 0.1, 0.1])


class Toy:
    """Words follow by a law of all the words before; what need not be exact is as large as it may be."""

    name = "toy"

    def p(self, before: Sequence[str]) -> np.ndarray:
        if before and before[-1] in ("cat", "dog"):
            right = 3 if before[-1] == "cat" else 2
            return np.where(np.arange(5) == right, 0.96, 0.01)
        weights = np.random.default_rng([len(before), *" ".join(before).encode()]).random(5) ** 4
        return weights / weights.sum()

    def log_probability(self, texts, rows, columns, candidates, least):
        p = [self.p(texts[row][:column]) for row, column in zip(rows, columns, strict=True)]
        right = np.log(np.take_along_axis(np.array(p), np.maximum(candidates, 0), axis=1))
        return np.where(right < least, np.minimum(least, 0), right)


def reader(weight: float, vectors: np.ndarray | None = None) -> LeftToRightReader:
    if vectors is None:
        vectors = np.random.default_rng(3).normal(size=(5, 3))
    return LeftToRightReader(TableAdversary(Tem(vectors.astype(np.float32)), PRIOR), PRIOR, Toy(), NAMES, weight)


def tokens(texts: Sequence[Sequence[int | str | None]], epsilon: float) -> SeenTokens:
    """Texts of outputs (numbers), certain words, and positions of which nothing is known."""
    every = [one for text in texts for one in text]
    return SeenTokens(
        np.repeat(np.arange(len(texts)), [len(text) for text in texts]),
        np.array([one if isinstance(one, int) else -1 for one in every], dtype=np.int64),
        np.full(len(every), epsilon),
        [one if isinstance(one, str) else None for one in every],
    )


def one_by_one(made: LeftToRightReader, texts, epsilon: float, *, with_output: bool = True) -> list[int]:
    """Each word from the ones guessed before it."""
    law = np.exp(made.adversary.mechanism.log_pmf(np.arange(5), np.full(5, epsilon)))  # type: ignore[attr-defined]
    guesses = []
    for text in texts:
        before: list[str] = []
        for one in text:
            if one is None:
                before = []
            elif isinstance(one, str):
                before.append(one)
            else:
                follows = made.weight * Toy().p(before) + (1 - made.weight) * PRIOR
                guesses.append(int((follows * (law[:, one] if with_output else 1)).argmax()))
                before.append(NAMES[guesses[-1]])
    return guesses


def texts_at_random(n: int) -> list[list[int | str | None]]:
    rng = np.random.default_rng(9)
    symbols = [0, 1, 2, 3, 4, "the", "cat", None]
    return [[symbols[at] for at in rng.integers(0, 8, rng.integers(0, 9))] for _ in range(n)]


@pytest.mark.parametrize("weight", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_guesses_are_those_of_one_word_after_the_other(weight: float, epsilon: float) -> None:
    made, texts = reader(weight), texts_at_random(100)
    guesses = made.guess(tokens(texts, epsilon))
    assert guesses.by_context.tolist() == one_by_one(made, texts, epsilon)
    assert guesses.without_output.tolist() == one_by_one(made, texts, epsilon, with_output=False)
    assert guesses.by_context.tolist() != guesses.by_word.tolist()


def test_context_decides_between_words_that_the_channel_cannot_tell_apart() -> None:
    """ "barked" and "purred" have one vector; which it was follows from the animal alone."""
    vectors = np.array([[9, 0], [0, 9], [-9, -9], [-9, -9], [9, 9]], dtype=np.float64)
    guesses = reader(0.5, vectors).guess(tokens([["cat", 2], ["dog", 3], [0, 2], [1, 3]], 8.0))
    assert guesses.by_word.tolist() == [2, 2, 0, 2, 1, 2]
    assert guesses.by_context.tolist() == [3, 2, 0, 3, 1, 2]
    assert guesses.without_output.tolist()[:2] == [3, 2]


def test_without_the_model_the_guesses_are_those_by_the_word() -> None:
    guesses = reader(0.0).guess(tokens(texts_at_random(100), 1.0))
    assert guesses.by_context.tolist() == guesses.by_word.tolist() and len(set(guesses.by_word.tolist())) > 2
    assert set(guesses.without_output.tolist()) == {0}  # the most frequent


def test_how_texts_are_cut_into_parts_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    made, given = reader(0.5), tokens(texts_at_random(60), 1.0)
    whole = made.guess(given)
    monkeypatch.setattr(left_to_right, "POSITIONS", 20)
    monkeypatch.setattr(left_to_right, "PLACES", 6)
    parts = made.guess(given)
    for name in ("by_word", "by_context", "without_output"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()


def test_candidates_that_are_none_are_never_guessed() -> None:
    found = Candidates(np.array([[1, -1], [0, 4]]), np.array([[-40.0, -np.inf], [-3.0, -9.0]]))
    assert reader(1.0).decode([None, "the", None], [3], found).tolist()[0] == 1


def test_no_text() -> None:
    for none in (tokens([], 1.0), tokens([["the", None]], 1.0)):
        made = reader(0.5).guess(none)
        assert len(made.by_word) == len(made.by_context) == len(made.without_output) == 0
