"""Adversaries that decode texts which were replaced by sentences of a sentence bank.

The output distribution is known exactly: Pr[M(x) = y] = exp(-ε·min(d, γ)/2) / Z(x) for each drawn
sentence, and the draws of a text are independent given the text. The adversary suspects the source
among candidate texts, all equally likely in advance.

The results depend on source texts, so they are computed only for evaluation data and public texts.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Self

import numpy as np

from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.base import product_distances
from lexveil.core.mechanisms.sentence_draws import SentenceDraws

QUERIES_AT_A_TIME = 64  # queries per block, whose distances to all sentences are in memory together


@dataclass(frozen=True, slots=True, repr=False)
class Channel:
    """Output probabilities of some sentences of a sentence bank, for some query vectors.

    Attributes:
        log_p: (q, m) ln Pr[M(query) = sentence].
        place: the number of each of the m sentences, from 0, by the sentence's row in the bank.
    """

    log_p: Floats
    place: dict[int, int]

    @classmethod
    def of(cls, mechanism: SentenceDraws, queries: Vectors, rows: Ids, epsilon: float) -> Self:
        """Return the output probabilities of the sentences that were drawn. Distances are accurate
        to about 1e-3.

        Args:
            rows: the rows of the sentences in the sentence bank.
        """
        drawn = np.unique(rows)
        gamma = float(mechanism.gamma(np.array([epsilon]))[0])
        parts = []
        for start in range(0, len(queries), QUERIES_AT_A_TIME):
            block = queries[start : start + QUERIES_AT_A_TIME]
            distances = product_distances(block, mechanism.vectors)
            # ε·γ/2 is below 50, so that no weight is 0
            log_weight = -epsilon / 2 * np.minimum(distances, gamma, out=distances)
            of_drawn = log_weight[:, drawn]
            total = np.exp(log_weight, out=log_weight).sum(axis=1, keepdims=True)
            parts.append(of_drawn - np.log(total))
        place = {row: number for number, row in enumerate(drawn.tolist())}
        return cls(np.concatenate(parts), place)

    def log_likelihood(self, outputs: Ids) -> Floats:
        """Return (q,) the log-likelihood of an output under each query: Σ ln Pr[M(query) = y] over
        the sentences y of the output.
        """
        places = [self.place[row] for row in outputs.tolist()]
        likelihood: Floats = self.log_p[:, places].sum(axis=1)
        return likelihood


def posterior(log_likelihood: Floats) -> Floats:
    """Return the posterior probabilities of candidate texts that are equally likely in advance."""
    weights = np.exp(log_likelihood - log_likelihood.max())
    chances: Floats = weights / weights.sum()
    return chances


def named_words(
    chances: Floats, words: Sequence[Set[str]], n_words: int, own: Set[str] = frozenset()
) -> set[str]:
    """Return the words that an adversary names as words of the source text, which are the words
    with the highest posterior probability.

    Args:
        chances: the probabilities of the candidates.
        words: the words of each candidate.
        n_words: number of words that the reader names.
        own: words of the output, which come first among equally likely words.
    """
    mass: dict[str, float] = {}
    for chance, of_candidate in zip(chances.tolist(), words, strict=True):
        for word in of_candidate:
            mass[word] = mass.get(word, 0.0) + chance
    ranked = sorted(mass, key=lambda word: (-mass[word], word not in own, word))
    return {*ranked[:n_words]}
