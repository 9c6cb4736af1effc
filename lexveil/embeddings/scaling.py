"""Lengths of vectors by public rules: which words lie close together, and so hide each other.

A mechanism with the guarantee ε·d protects two words the more, the closer they are. Any map of the
vocabulary into a space that depends on public things alone gives a metric (a pseudometric where it
maps two words to one point), and the proofs ask for no more: a word can be protected more by a
shorter vector, and never by an ε of its own, which would tell the word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from lexveil.embeddings.word_space import WordSpace, unit_vectors
from lexveil.types import Counts, Floats

Rule = Literal["none", "unit", "frequency"]
EXPONENT = 0.2
# of factors: processors differ in the last digits of powers and sums, and vectors are to be the
# same bytes
PLACES = 9
SMOOTHING = 0.5  # occurrences added to each word, so that one never counted has a length


def frequency_factors(counts: Counts, exponent: float = EXPONENT) -> Floats:
    """(count / largest count)^exponent of each of V words, in (0, 1]; shape (V,)."""
    smoothed = counts + SMOOTHING
    factors: Floats = (smoothed / smoothed.max(initial=SMOOTHING)) ** exponent
    return factors.round(PLACES)


def listed_factors(tokens: Sequence[str], factors: Mapping[str, float]) -> Floats:
    """The factor of each of V tokens by a public list; shape (V,).

    A collocation that is not listed itself has the smallest factor of its words that are, or a name
    that is listed would stand unprotected in the longer one; what is not listed has 1.
    """
    found = np.ones(len(tokens))
    if factors:
        for row, token in enumerate(tokens):
            if token in factors:
                found[row] = factors[token]
            elif "_" in token:
                found[row] = min(
                    (factors[word] for word in token.split("_") if word in factors), default=1.0
                )
    return found


def kept_length(space: WordSpace, factors: Floats) -> float:
    """The number by which lengths of ``factors`` (V,) have the mean length of an occurrence that
    the space has.

    1 where there are no occurrences, or none that has a length.
    """
    has_length = space.vectors.any(axis=1)  # one of length 0 stays so
    before = float(space.counts @ np.linalg.norm(space.vectors, axis=1).astype(np.float64))
    after = float(space.counts @ np.where(has_length, factors, 0.0))
    return round(before / after, PLACES) if before and after else 1.0


def scaled(space: WordSpace, rule: Rule, factors: Mapping[str, float] | None = None) -> WordSpace:
    """The space with other lengths of its vectors; one of length 0 stays.

    Distances, and with them what an epsilon means, which is per unit of distance, are others.

    Args:
        rule: none leaves lengths as they are, unit makes them 1, frequency those of
            ``frequency_factors``, all times one number, so that the mean length of an occurrence
            stays and an epsilon is of the same order as before.
        factors: of words, from a public list, by which lengths are multiplied then; see
            ``listed_factors``.
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
