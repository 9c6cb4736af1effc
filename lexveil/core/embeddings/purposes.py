"""Purposes: additional axes of an embedding, each of which separates words by a public score, such
as sentiment.

A scale gives words a score from -1 to 1, as a lexicon of sentiment does. Its axis separates words
of different scores, so that a word is more often replaced by a word with a score of the same sign.
The metric stays public and is fixed before any text is read. So mechanisms, proofs, audits and
adversaries apply unchanged, in the metric with these axes. The cost is that a word on the scale has
fewer likely replacements, so an adversary recovers more of these words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Floats, Vectors
from lexveil.core.embeddings.word_space import WordSpace, unit_vectors

# displacement of a word of median length, in lengths of its vector, at score 1 and weight 1
REACH = 1.8
STEP = 2.0**-12  # step of coordinates: coarser than the rounding differences between processors
# range of weights; with a smaller weight, rounding would remove the axis
LIGHTEST = 0.01
HEAVIEST = 10.0
PENALTY = 5.0  # penalty of the ridge regression; between 0.5 and 20 it hardly changes a scale
LEAST_SCORE = 0.3  # a predicted score that is nearer to 0 is chance


@dataclass(frozen=True, slots=True)
class Purpose:
    """Purpose of a metric: a public scale of word scores, such as a sentiment lexicon, and its
    weight.

    Attributes:
        weight: weight of the scale, from ``LIGHTEST`` to ``HEAVIEST``.
        scores: scores from -1 to 1 by token in normal form; words of a collocation are joined by
            ``_``.
        sha256: SHA-256 of the file from which the scale was read.
        is_public: whether the author of the file states that it was made without private texts.
    """

    name: str
    weight: float
    scores: Mapping[str, float]
    sha256: str
    is_public: bool

    def __str__(self) -> str:
        """Return NAME=WEIGHT with all digits of the weight, so that different purposes have
        different text forms.
        """
        return f"{self.name}={self.weight!r}".removesuffix(".0")

    def of(self, tokens: Sequence[str]) -> Floats:
        """Return (V,) the score of each token on the scale: its own score, or for a collocation
        without a score the mean of its words' scores; 0 for tokens without any score.
        """
        scores = self.scores
        return np.array([_score(token, scores) for token in tokens], dtype=np.float64)


def _score(token: str, scores: Mapping[str, float]) -> float:
    if (own := scores.get(token)) is not None or "_" not in token:
        return own or 0.0
    words = token.split("_")
    return sum(scores.get(word, 0.0) for word in words) / len(words)


def with_axes(space: WordSpace, purposes: Sequence[Purpose]) -> WordSpace:
    """Return the word space with an additional axis for each purpose: (V, p + n) float32.

    The coordinate of a word on an axis is ``REACH`` · weight · score · l² / (median of l), rounded
    to multiples of ``STEP``, where l is the length of the word's vector. Rare words have short
    vectors, so they are separated less and are hidden as well as without the axis.
    """
    if not purposes:
        return space
    vectors: Vectors = np.asarray(space.vectors)
    lengths = np.sqrt(np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64))
    reach = REACH * lengths**2 / np.median(lengths)
    axes = np.stack([one.weight * one.of(space.tokens) * reach for one in purposes], axis=1)
    rounded: npt.NDArray[np.float32] = (np.rint(axes / STEP) * STEP).astype(np.float32)
    return WordSpace(space.tokens, np.hstack([vectors, rounded]), space.counts)


def spread(space: WordSpace, known: Mapping[str, float]) -> dict[str, float]:
    """Predict scores of further words from known scores, by the positions of the words in the
    space.

    The prediction is a ridge regression (Hoerl & Kennard 1970) of the known scores, including those
    that are 0, on unit vectors. Known words keep their score. Predicted scores are moved towards 0
    by ``LEAST_SCORE``, since most words are on no scale.

    Returns:
        Scores other than 0, rounded to two decimals. Collocations are left out, because their words
        determine their scores.
    """
    unit = unit_vectors(space.vectors).astype(np.float64)
    rows = [row for row, token in enumerate(space.tokens) if token in known]
    scores = np.array([known[space.tokens[row]] for row in rows])
    of_known = unit[rows]
    weights = np.linalg.solve(
        of_known.T @ of_known + PENALTY * np.eye(unit.shape[1]), of_known.T @ scores
    )
    predicted = unit @ weights
    drawn = np.sign(predicted) * np.maximum(np.abs(predicted) - LEAST_SCORE, 0) / (1 - LEAST_SCORE)
    whole = dict(zip(space.tokens, np.clip(drawn, -1, 1).round(2).tolist(), strict=True)) | dict(
        known
    )

    def is_word(token: str) -> bool:
        return "_" not in token and any(map(str.isalpha, token))

    return {
        token: score
        for token, score in whole.items()
        if score and (token in known or is_word(token))
    }
