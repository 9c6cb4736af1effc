"""Scaling of vector lengths by public rules. The lengths decide how close words lie, and so how
well words hide each other.

A mechanism with the guarantee ε·d protects two words the better, the closer they are. Every map of
the vocabulary into a space that depends only on public facts gives a metric (a pseudometric if it
maps two words to one point), and the proofs need nothing else. So a shorter vector protects a word
better. An ε that depended on the word would reveal the word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from lexveil.base.types import Counts, Floats
from lexveil.core.embeddings.word_space import WordSpace, unit_vectors

Rule = Literal["none", "unit", "frequency"]
EXPONENT = 0.2
# decimals of factors: processors differ in the last digits of powers and sums, and vectors must
# have the same bytes
PLACES = 9
# number added to the count of each word, so that the factor of a word with count 0 is not 0
SMOOTHING = 0.5


def frequency_factors(counts: Counts, exponent: float = EXPONENT) -> Floats:
    """Return a factor for each of V words that grows with its frequency: (count / largest
    count)^exponent, in (0, 1]; shape (V,).
    """
    smoothed = counts + SMOOTHING
    factors: Floats = (smoothed / smoothed.max(initial=SMOOTHING)) ** exponent
    return factors.round(PLACES)


def listed_factors(tokens: Sequence[str], factors: Mapping[str, float]) -> Floats:
    """Return the length factor of each of V tokens according to a public list; shape (V,).

    A collocation without an entry gets the smallest factor of its listed words. Otherwise a listed
    name would have weaker protection inside a collocation. Tokens without any entry get 1.
    """
    factor_of_token = np.ones(len(tokens))
    if factors:
        for row, token in enumerate(tokens):
            if token in factors:
                factor_of_token[row] = factors[token]
            elif "_" in token:
                factor_of_token[row] = min(
                    (factors[word] for word in token.split("_") if word in factors), default=1.0
                )
    return factor_of_token


def kept_length(space: WordSpace, factors: Floats) -> float:
    """Return the number that normalizes ``factors`` (V,): multiplied by it, they leave the mean
    vector length over all occurrences in the space unchanged.

    The number is 1 if there are no occurrences, or if all lengths are 0.
    """
    has_length = space.vectors.any(axis=1)  # a vector of length 0 stays 0
    before = float(space.counts @ np.linalg.norm(space.vectors, axis=1).astype(np.float64))
    after = float(space.counts @ np.where(has_length, factors, 0.0))
    return round(before / after, PLACES) if before and after else 1.0


def scaled(space: WordSpace, rule: Rule, factors: Mapping[str, float] | None = None) -> WordSpace:
    """Return the word space with its vectors scaled to other lengths; a vector of length 0 stays
    0.

    Scaling changes distances, and with them the meaning of an epsilon, which is per unit of
    distance.

    Args:
        rule: ``none`` leaves lengths as they are; ``unit`` makes them 1; ``frequency`` multiplies
            ``frequency_factors`` by one number that keeps the mean length of an occurrence, so that
            useful epsilons have the same order as before.
        factors: further factors by word, from a public list; see ``listed_factors``.
    """
    if rule == "none" and not factors:
        return space
    vectors = space.vectors if rule == "none" else unit_vectors(space.vectors)
    by_word = np.ones(len(space.tokens))
    if rule == "frequency":
        by_word = frequency_factors(space.counts)
        by_word *= kept_length(space, by_word)
    by_word *= listed_factors(space.tokens, factors or {})
    return WordSpace(space.tokens, (vectors * by_word[:, None]).astype(np.float32), space.counts)
