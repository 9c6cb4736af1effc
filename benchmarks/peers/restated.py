"""Functions of CLMLDP as its paper prints them (Algorithms 1 to 3); no package contains them.

The errors of the pseudocode are kept, because their effect on a text is measured: after a single
word Algorithm 1 advances by three words, and Algorithm 2 treats a word that occurs twice as matched
already. The module needs only NumPy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Gram = tuple[str, ...]


def gst(words: Sequence[str], bigrams: Collection[Gram], trigrams: Collection[Gram]) -> list[Gram]:
    """Cut a sentence by Algorithm 1, Greedy Sequential Tokenization."""
    pairs = set(pairwise(words)) & set(bigrams)
    triples = set(zip(words, words[1:], words[2:], strict=False)) & set(trigrams)
    output: list[Gram] = []
    at = 0
    while at < len(words):
        found: Gram = tuple(words[at : at + 3])
        if found not in triples:
            found = tuple(words[at : at + 2])
        is_found = found in triples or found in pairs
        output.append(found if is_found else (words[at],))
        if is_found:
            pairs.discard(found)
            triples.discard(found)
        at += 2 if is_found and found in bigrams else 3
    return output


def mst(
    words: Sequence[str], bigrams: Mapping[Gram, float], trigrams: Mapping[Gram, float]
) -> list[Gram]:
    """Cut a sentence by Algorithm 2, Max Score Tokenization, in descending order of scores; single
    words come last.
    """
    single: list[Gram] = [(word,) for word in words]
    pairs = [pair for pair in pairwise(words) if pair in bigrams]
    triples = [
        triple for triple in zip(words, words[1:], words[2:], strict=False) if triple in trigrams
    ]
    scores = {**bigrams, **trigrams}
    output: list[Gram] = []
    matched: set[str] = set()
    for found in sorted([*single, *pairs, *triples], key=lambda one: -scores.get(one, -np.inf)):
        if all(word not in matched for word in found):
            output.append(found)
            matched.update(found)
    return output


class Madlib:
    """Algorithm 3, token by token. A token without a vector stays unchanged, a case that the paper
    does not mention.
    """

    def __init__(self, words: Sequence[str], vectors: Any, epsilon: float) -> None:
        self.words = list(words)
        self.vectors = vectors
        self.epsilon = epsilon
        self.row = {word: row for row, word in enumerate(words)}
        self.rng = np.random.default_rng()

    def __call__(self, word: str) -> str:
        """Return the replacement of a word."""
        row = self.row.get(word)
        if row is None:
            return word
        p = self.vectors.shape[1]
        noise = self.rng.standard_normal(p)
        noise *= self.rng.gamma(p, 1 / self.epsilon) / np.linalg.norm(noise)
        return self.words[
            int(np.linalg.norm(self.vectors - (self.vectors[row] + noise), axis=1).argmin())
        ]
