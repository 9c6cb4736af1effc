"""Bigram model of public texts. It draws a random text around a word, and gives an adversary the
probabilities of these texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lexveil.base.types import Counts, Floats, Ids
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.language_models.kneser_ney import BigramModel
from lexveil.readers.bands import prior_of

REACH = 1  # number of tokens on either side of the measured token


class TokenBigrams:
    """Bigram probabilities of V tokens: public counts interpolated with frequencies, as in Witten
    and Bell (1991).

    If a token was followed n times, by t different tokens, the next token is one of these with
    probability n / (n + t), otherwise any token by its frequency. Texts are drawn from this model,
    and the contextual adversary uses it as its language model. So the adversary knows these texts
    better than an adversary with the same counts knows other texts. A collocation is one symbol.
    """

    def __init__(self, tokens: Sequence[str], counts: Counts, bigrams: Bigrams) -> None:
        self.tokens, self.single = tokens, prior_of(counts)
        self._after, self._before = bigrams, bigrams.turned()
        self._number = {token: row for row, token in enumerate(tokens)}

    def numbers(self, words: Iterable[str]) -> Ids:
        """Return the symbol number of each word, as in ``WordModel``."""
        return np.array([self._number[word] for word in words], dtype=np.int64)

    def bigrams(self) -> BigramModel:
        """Return the bigram probabilities by symbol numbers, as in ``WordModel``."""
        first = self._after.first
        kinds = np.diff(self._after.starts)
        none = np.zeros(3)
        single = np.append(self.single, none)
        rest = np.append(_alone(self._after), none + 1)
        starts = np.append(self._after.starts, np.full(3, len(first)))
        seen = self._after.counts * rest[first] / kinds[first]  # c / (n + t)
        return BigramModel(single, starts, first * len(single) + self._after.ids, seen, rest)

    def around(self, rows: Ids, rng: np.random.Generator) -> Ids:
        """Draw one random text around each of n tokens, with the token in the middle; (n, 2·REACH +
        1).
        """
        texts = np.empty((len(rows), 2 * REACH + 1), dtype=np.int64)
        texts[:, REACH] = rows
        for step in range(1, REACH + 1):
            texts[:, REACH + step] = self._next(self._after, texts[:, REACH + step - 1], rng)
            texts[:, REACH - step] = self._next(self._before, texts[:, REACH - step + 1], rng)
        return texts

    def _next(self, bigrams: Bigrams, tokens: Ids, rng: np.random.Generator) -> Ids:
        is_alone = rng.random(len(tokens)) < _alone(bigrams)[tokens]
        any_token = rng.choice(len(self.single), len(tokens), p=self.single)
        return np.where(is_alone, any_token, bigrams.draw(tokens, rng))


def _alone(bigrams: Bigrams) -> Floats:
    """Return (V,) the probability that the next token is drawn by its frequency alone: t / (n + t),
    or 1 after a token without counted followers.
    """
    kinds = np.diff(bigrams.starts)
    n = np.bincount(bigrams.first, bigrams.counts, len(kinds))
    return np.where(kinds > 0, kinds / np.maximum(n + kinds, 1), 1.0)
