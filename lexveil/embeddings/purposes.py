"""Metrics that keep a purpose: an embedding with one more axis for each public scale of words.

A scale gives words a score from -1 to 1, as a lexicon of sentiment does. Its axis holds words of
different scores apart, so that a word is more often replaced by one of its own side. The metric
stays public and fixed before any text is read: mechanisms, proofs, audits and readers apply as they
are, in the metric with these axes. What it costs is that a word on the scale can be taken for fewer
others: ``lexveil.recovery.purposes`` says how many are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.embeddings.word_space import WordSpace, unit_vectors
from lexveil.types import Floats, Vectors

# lengths of the vector that a word of the middle length lies off, of score 1 and at weight 1
REACH = 1.8
STEP = 2.0**-12  # of coordinates: coarser than what processors round in other ways
LIGHTEST, HEAVIEST = 0.01, 10.0  # weights; with less an axis is rounded away
PENALTY = 5.0  # of the ridge regression; between 0.5 and 20 a scale hardly changes
LEAST = 0.3  # a found score that is nearer to 0 is chance


@dataclass(frozen=True, slots=True)
class Purpose:
    """A public scale of words, and how much it counts.

    Attributes:
        weight: from ``LIGHTEST`` to ``HEAVIEST``.
        scores: from -1 to 1, of tokens in normal form; words of a collocation are joined by ``_``.
        sha256: of the file that it was read from.
        is_public: whether who made it says that no private text has a part in it.
    """

    name: str
    weight: float
    scores: Mapping[str, float]
    sha256: str
    is_public: bool

    def __str__(self) -> str:
        """NAME=WEIGHT with all digits of the weight: what differs has another name."""
        return f"{self.name}={self.weight!r}".removesuffix(".0")

    def of(self, tokens: Sequence[str]) -> Floats:
        """(V,) the score of each token; of a collocation without one, the mean of its words'; of
        other words 0.
        """
        scores = self.scores
        return np.array([_score(token, scores) for token in tokens], dtype=np.float64)


def _score(token: str, scores: Mapping[str, float]) -> float:
    if (own := scores.get(token)) is not None or "_" not in token:
        return own or 0.0
    words = token.split("_")
    return sum(scores.get(word, 0.0) for word in words) / len(words)


def with_axes(space: WordSpace, purposes: Sequence[Purpose]) -> WordSpace:
    """The space with one more axis for each purpose: (V, p + n) float32.

    The axis of a word is ``REACH`` · weight · score · l² / the median of l, where l is the length
    of its vector, rounded to whole ``STEP``: rare words, whose vectors are short, are held apart
    less and stay hidden as without it.
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
    """Scores of more words, found from the known ones by where words stand in the space.

    Ridge regression (Hoerl & Kennard 1970) of the known scores, 0 among them, on vectors of length
    1. Words that are known keep their score; what is found of others is drawn to 0 by ``LEAST``,
       since most words are on no scale.

    Returns:
        Scores that are not 0, to two places; collocations are left to their words.
    """
    unit = unit_vectors(space.vectors).astype(np.float64)
    rows = [row for row, token in enumerate(space.tokens) if token in known]
    scores = np.array([known[space.tokens[row]] for row in rows])
    of_known = unit[rows]
    weights = np.linalg.solve(
        of_known.T @ of_known + PENALTY * np.eye(unit.shape[1]), of_known.T @ scores
    )
    found = unit @ weights
    drawn = np.sign(found) * np.maximum(np.abs(found) - LEAST, 0) / (1 - LEAST)
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
