"""Vectors of collocations that were not trained: the mean of the vectors of their words.

The rule is fixed and public. A composed vector depends only on the word vectors, never on a private
text, so the guarantee of a mechanism also holds for a space with composed vectors. The price is a
loss of meaning: *hot dog* lies between *hot* and *dog*, and *dog hot* would have the same vector
(docs/decisions/0011-composed-vectors.md).

Source: the additive model of Mitchell and Lapata (2010), *Composition in Distributional Models of
Semantics*, divided by the number of words so that a composed vector has a similar length to the
vectors with which it is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lexveil.base.types import Vectors


def composed(tokens: Sequence[str], rows: Mapping[str, int], vectors: Vectors) -> Vectors:
    """Return a vector for each token: the arithmetic mean of its words' vectors.

    The words are added in float32 from left to right and the sum is divided by their number, so
    that every machine gives the same bytes.

    Args:
        tokens: n tokens of one or more words, joined by ``_``.
        rows: the row in ``vectors`` of each word.
        vectors: (V, p) float32; any other type is first rounded to float32.

    Returns:
        (n, p) float32, in the order of ``tokens``.

    Raises:
        KeyError: naming a word that has no vector.
    """
    means = np.empty((len(tokens), vectors.shape[1]), dtype=np.float32)
    for row, token in enumerate(tokens):
        words = vectors[[rows[word] for word in token.split("_")]].astype(np.float32)
        total = words[0]
        for vector in words[1:]:
            total += vector
        means[row] = total / np.float32(len(words))
    return means


def composable(tokens: Iterable[str], rows: Mapping[str, int]) -> list[str]:
    """Return the tokens for which ``composed`` can compute a vector, because all of their words
    have one; the order is kept.
    """
    return [token for token in tokens if all(word in rows for word in token.split("_"))]
