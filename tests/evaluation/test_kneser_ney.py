"""Kneser-Ney: by hand, against the formulas written out with dictionaries, and as a distribution."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.evaluation.kneser_ney import DISCOUNT, train


def flat(sentences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    sizes = [len(sentence) for sentence in sentences]
    return np.array([w for one in sentences for w in one], dtype=np.int64), np.cumsum([0, *sizes])


class Plain:
    """The formulas of the module's head, one n-gram at a time."""

    def __init__(self, sentences: list[list[int]], n_words: int, order: int) -> None:
        self.n_words, self.order = n_words, order
        raw: Counter[tuple] = Counter()
        for sentence in sentences:
            marked = self.marked(sentence)
            for length in range(1, order + 1):
                raw.update(tuple(marked[i : i + length]) for i in range(len(marked) - length + 1))
        before = defaultdict(set)
        for gram in raw:
            before[gram[1:]].add(gram[0])
        self.a = {
            gram: count if len(gram) == order or gram[0] == "<s>" else len(before[gram])
            for gram, count in raw.items()
            if gram != ("<s>",)
        }
        self.d = {}
        for length in range(1, order + 1):
            counts = Counter(a for gram, a in self.a.items() if len(gram) == length)
            both = counts[1] and counts[2]
            self.d[length] = counts[1] / (counts[1] + 2 * counts[2]) if both else DISCOUNT

    def marked(self, sentence: list[int]) -> list:
        return ["<s>", *(w if 0 <= w < self.n_words else "<unk>" for w in sentence), "</s>"]

    def p(self, word, history: tuple) -> float:
        followers = {gram[-1]: a for gram, a in self.a.items() if gram[:-1] == history}
        lower = self.p(word, history[1:]) if history else 1 / (self.n_words + 2)
        if not followers:
            return lower
        d, total = self.d[len(history) + 1], sum(followers.values())
        return max(followers.get(word, 0) - d, 0) / total + d * len(followers) / total * lower

    def log_probability(self, sentences: list[list[int]]) -> list[float]:
        return [
            math.log(self.p(marked[i], tuple(marked[max(0, i - self.order + 1) : i])))
            for marked in map(self.marked, sentences)
            for i in range(1, len(marked))
        ]


def some(seed: int, n: int, n_words: int, longest: int = 9) -> list[list[int]]:
    """Sentences with repetitions; some empty, some with unknown words (-1)."""
    rng = np.random.default_rng(seed)
    return [(rng.zipf(1.6, rng.integers(0, longest)) % (n_words + 1) - 1).tolist() for _ in range(n)]


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("seed", range(2))
def test_every_probability_is_that_of_the_formulas(seed: int, order: int) -> None:
    learned, other = some(seed, 60, 12), some(seed + 100, 30, 14)
    got = train(*flat(learned), n_words=12, order=order).log_probability(*flat(other))
    plain = Plain(learned, 12, order)
    assert got == pytest.approx(plain.log_probability(other), rel=1e-12)
    wrong = Plain(learned[:-20], 12, order).log_probability(other)
    assert not np.allclose(got, wrong)


def test_no_sentence_is_refused() -> None:
    with pytest.raises(ParameterError, match="no sentence"):
        train(*flat([]), n_words=1)
