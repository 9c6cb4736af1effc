"""Base model of a training: pretrained vectors that initialize the training and supply the tokens
that the corpus lacks.

A token that both the corpus and the base know begins with the base's vector. A collocation that
only the corpus has begins with the mean of its words' vectors
(``lexveil.core.embeddings.composition``), if the base knows all of them; every other token begins
at random, as in gensim. After training, the tokens that only the base has are appended with the
base's vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lexveil.base.types import Flags, Floats, Rows, Vectors
from lexveil.core.embeddings.composition import composable, composed
from lexveil.core.embeddings.word_space import WordSpace


@dataclass(frozen=True, slots=True)
class Base:
    """Base model for a training: pretrained word vectors that initialize it.

    Attributes:
        space: the base's tokens of that segmentation.
        keep: whether the base's vectors stay exactly as they are. Otherwise training changes the
            vectors of the tokens that occur in the corpus.
    """

    space: WordSpace
    keep: bool


@dataclass(frozen=True, slots=True)
class Start:
    """Initial vectors of the n tokens of a corpus.

    Attributes:
        vectors: (n, p) float32.
        is_known: (n,) whether a vector comes from the base.
        is_composed: (n,) whether a vector is the mean of its words' vectors.
    """

    vectors: Vectors
    is_known: Flags
    is_composed: Flags

    @property
    def is_random(self) -> Flags:
        """(n,) whether a token's initial vector was drawn at random."""
        return ~(self.is_known | self.is_composed)


def start(tokens: Sequence[str], drawn: Vectors, base: Base) -> Start:
    """Return the initial vectors of a corpus's tokens: from the base model, from their words, or
    random.

    Args:
        tokens: the corpus's n tokens.
        drawn: (n, p) random vectors, for the tokens that the base gives no vector.

    Raises:
        ValueError: if the base's vectors have another number of dimensions.
    """
    if drawn.shape[1] != base.space.vectors.shape[1]:
        raise ValueError(
            f"the vectors have {drawn.shape[1]} dimensions, the base's "
            f"{base.space.vectors.shape[1]}"
        )
    row_of = {token: row for row, token in enumerate(base.space.tokens)}
    vectors = np.array(drawn, dtype=np.float32)
    rows = np.array([row_of.get(token, -1) for token in tokens], dtype=np.int64)
    is_known = rows >= 0
    vectors[is_known] = base.space.vectors[rows[is_known]]
    place = {
        token: number
        for number, token in enumerate(tokens)
        if "_" in token and not is_known[number]
    }
    new = composable(place, row_of)
    is_composed = np.zeros(len(tokens), dtype=np.bool_)
    if new:
        at = np.array([place[token] for token in new], dtype=np.int64)
        vectors[at] = composed(new, row_of, base.space.vectors)
        is_composed[at] = True
    return Start(vectors, is_known, is_composed)


def joined(own: WordSpace, base: WordSpace) -> tuple[WordSpace, Rows]:
    """Merge two word spaces, and sort the tokens by falling count. A token that both spaces
    contain gets the vector of ``own`` and the sum of the two counts.

    Tokens of equal count keep their order; the tokens of ``own`` come first.

    Returns:
        The V tokens, and (V,) the row of each token in ``own``, -1 if ``own`` lacks it.
    """
    row_of = {token: row for row, token in enumerate(base.tokens)}
    rows = np.array([row_of.get(token, -1) for token in own.tokens], dtype=np.int64)
    lacking = np.setdiff1d(np.arange(len(base.tokens)), rows)
    counts = np.concatenate(
        [own.counts + np.where(rows >= 0, base.counts[rows], 0), base.counts[lacking]]
    )
    order = np.argsort(-counts, kind="stable")
    tokens = [*own.tokens, *(base.tokens[row] for row in lacking.tolist())]
    vectors = np.concatenate([own.vectors, base.vectors[lacking]]).astype(np.float32)
    of_own = np.concatenate([np.arange(len(own.tokens)), np.full(len(lacking), -1)])
    return WordSpace(
        [tokens[row] for row in order.tolist()], vectors[order], counts[order]
    ), of_own[order]


def of_joined(figures: Floats, rows: Rows) -> Floats:
    """Reorder values for the n tokens of ``own`` into the token order of ``joined``, (V,); the
    value is NaN for a token that ``own`` lacks.
    """
    return (
        np.where(rows >= 0, figures[rows], np.nan) if len(figures) else np.full(len(rows), np.nan)
    )
