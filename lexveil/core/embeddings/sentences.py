"""Sentence and text vectors: weighted means of the vectors of words and collocations.

A unit is a sentence or a whole text. Its vector is the sum of the vectors of its known tokens, each
times the weight a / (a + frequency) with a = 10^-3, minus the component of this sum along one
public direction, scaled to length 1 (Arora, Liang & Ma 2017). Each purpose adds one coordinate.
Weights, direction and purposes are public and fixed before a text is read. The vector of a unit is
computed from its own tokens only, in a fixed order, so it is the same in every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from lexveil.base.types import Counts, Floats, Ids, Vectors
from lexveil.core.embeddings.purposes import STEP, Purpose
from lexveil.core.embeddings.word_space import WordSpace

SMOOTHING = 1e-3  # a: the frequency at which the weight of a token is one half
TOKENS_AT_A_TIME = 4096  # approximate number of tokens per block of units
# length of scaled vectors: after rounding to float32 none is longer than 1
UNIT = 1 - 2.0**-20
NOTHING = 1e-9  # relative length of a sum below which only rounding errors remain of it


@dataclass(frozen=True, slots=True)
class Units:
    """Token sequences of n units, stored one after the other. A unit is a sentence or a whole
    text.

    Attributes:
        rows: (m,) row of each token in the embedding; -1 for a token that is not in it.
        starts: (n + 1,) the position at which the tokens of each unit begin.
    """

    rows: Ids
    starts: Ids

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, rows: Ids, unit_of: Ids, n_units: int) -> Self:
        """Build units from the flat sequence of their tokens.

        Args:
            rows: the row of each token in the embedding.
            unit_of: the number of the unit of each token, ascending.
            n_units: number of units.
        """
        starts = np.searchsorted(unit_of, np.arange(n_units + 1)).astype(np.int64)
        return cls(rows, starts)

    def known(self) -> Units:
        """Return the units without the tokens that the embedding lacks."""
        is_known = self.rows >= 0
        before = np.concatenate([[0], np.cumsum(is_known)])
        return Units(self.rows[is_known], before[self.starts])


@dataclass(frozen=True, slots=True)
class CutTexts:
    """Tokens of texts, divided both into whole texts and into sentences.

    Attributes:
        texts: each text one unit.
        sentences: the same tokens, each sentence one unit.
    """

    texts: Units
    sentences: Units

    def __len__(self) -> int:
        return len(self.texts)

    def draws(self, per_text: int | None) -> tuple[Units, Ids, Ids]:
        """Select the units that have a vector; return them, and for each draw of a replacement its
        text and its unit.

        Args:
            per_text: number of draws for a text, in which case each text is one unit; None makes
                each sentence a unit with one draw.
        """
        if per_text is not None:
            of = np.repeat(np.arange(len(self.texts)), per_text)
            return self.texts, of, of
        begins = self.sentences.starts[:-1]
        text_of = np.searchsorted(self.texts.starts, begins, side="right") - 1
        return self.sentences, text_of, np.arange(len(self.sentences))


@dataclass(frozen=True, slots=True)
class SentenceAxis:
    """Additional coordinate of sentence vectors for one purpose (a public scale of word scores):
    weight · tanh(mean score of the tokens / deviation).

    Attributes:
        scores: (V,) the scores of the tokens of the embedding.
        deviation: the standard deviation of the mean scores of the sentences of the sentence bank.
    """

    weight: float
    scores: Floats
    deviation: float


@dataclass(frozen=True, slots=True)
class SentenceSpace:
    """Map from the tokens of a unit (a sentence or a text) to the unit's vector.

    Attributes:
        vectors: (V, p) the vectors of the tokens.
        weights: (V,) the weights of the tokens.
        component: (p,) of length 1, the direction that is removed from sums; zeros remove nothing.
        axes: the axes of the purposes.
    """

    vectors: Vectors
    weights: Floats
    component: Floats
    axes: tuple[SentenceAxis, ...] = ()

    @classmethod
    def fitted(cls, space: WordSpace, bank: Units) -> Self:
        """Fit the sentence space to a public sentence bank. The removed direction is the first
        principal component of the bank's sentences.
        """
        weights = token_weights(space.counts)
        plain = cls(np.asarray(space.vectors), weights, np.zeros(space.vectors.shape[1]))
        return cls(plain.vectors, weights, principal_component(plain, bank))

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a unit's vector."""
        return int(self.vectors.shape[1]) + len(self.axes)

    @property
    def diameter(self) -> float:
        """Upper bound D on the distance between two units."""
        return float(2 * np.sqrt(1 + sum(axis.weight**2 for axis in self.axes)))

    @property
    def radius(self) -> float:
        """Upper bound on the length of a unit's vector."""
        return self.diameter / 2

    def with_purposes(
        self, tokens: Sequence[str], purposes: Sequence[Purpose], bank: Units
    ) -> SentenceSpace:
        """Return the sentence space with an additional coordinate for each purpose (a public scale
        of word scores).

        Raises:
            ValueError: naming a purpose that does not distinguish any sentences of the bank.
        """
        axes = []
        for purpose in purposes:
            scores = purpose.of(tokens)
            deviation = float(np.std(self.mean_scores(bank, scores)))
            if not deviation:
                raise ValueError(purpose.name)
            axes.append(SentenceAxis(purpose.weight, scores, deviation))
        return replace(self, axes=tuple(axes))

    def embed(self, units: Units) -> Vectors:
        """Return the vectors of n units, (n, p + number of axes) float32; the vector of a unit
        without known tokens is zero.
        """
        known = units.known()
        vectors = np.zeros((len(units), self.dimensions), dtype=np.float32)
        p = self.vectors.shape[1]
        for start, stop in _blocks(known.starts):
            sums = self._sums(known, start, stop)
            before = _lengths(sums)
            along = (sums * self.component).sum(axis=1)
            sums -= along[:, None] * self.component
            lengths = _lengths(sums)
            is_something = lengths > NOTHING * before
            unit = UNIT * sums / np.where(is_something, lengths, 1.0)[:, None]
            vectors[start:stop, :p] = np.where(is_something[:, None], unit, 0.0)
        for place, axis in enumerate(self.axes):
            score = np.tanh(self.mean_scores(units, axis.scores) / axis.deviation)
            # coarser than the rounding differences between processors
            vectors[:, p + place] = np.trunc(axis.weight * score / STEP) * STEP
        return vectors

    def mean_scores(self, units: Units, scores: Floats) -> Floats:
        """Return (n,) the weighted mean score of each unit's known tokens, with the tokens'
        weights; 0 for a unit without known tokens.
        """
        known = units.known()
        weights = self.weights[known.rows]
        total = _sum_units(weights * scores[known.rows], known.starts)
        weight = _sum_units(weights, known.starts)
        return np.divide(total, weight, out=np.zeros(len(total)), where=weight > 0)

    def _sums(self, known: Units, start: int, stop: int) -> Floats:
        """Return (stop - start, p) the weighted sum of the token vectors of each unit in a
        range.
        """
        first = known.starts[start]
        last = known.starts[stop]
        rows = known.rows[first:last]
        weighted = self.vectors[rows].astype(np.float64) * self.weights[rows][:, None]
        return _sum_units(weighted, known.starts[start : stop + 1] - first)


def token_weights(counts: Counts) -> Floats:
    """Return (V,) the weight a / (a + frequency) of each token, computed from the tokens'
    counts.
    """
    weights: Floats = SMOOTHING / (SMOOTHING + counts / max(int(counts.sum()), 1))
    return weights


def principal_component(space: SentenceSpace, bank: Units) -> Floats:
    """Return (p,) the first principal component of the sentence bank: the direction in which the
    mean vectors of its sentences have the largest sum of squares, without centring. Its largest
    coordinate is positive.
    """
    known = bank.known()
    p = space.vectors.shape[1]
    moments = np.zeros((p, p))
    for start, stop in _blocks(known.starts):
        sizes = np.maximum(np.diff(known.starts[start : stop + 1]), 1)
        means = space._sums(known, start, stop) / sizes[:, None]
        moments += means.T @ means
    direction = np.linalg.eigh(moments)[1][:, -1]
    component: Floats = direction * np.sign(direction[np.argmax(np.abs(direction))])
    return component


def _sum_units(values: Floats, starts: Ids) -> Floats:
    """Return the sum of the values in each unit; 0 for a unit without values."""
    sums = np.zeros((len(starts) - 1, *values.shape[1:]))
    is_there = np.diff(starts) > 0
    if is_there.any():
        sums[is_there] = np.add.reduceat(values, starts[:-1][is_there], axis=0)
    return sums


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt((vectors * vectors).sum(axis=1))
    return lengths


def _blocks(starts: Ids) -> list[tuple[int, int]]:
    """Divide the units into ranges with about ``TOKENS_AT_A_TIME`` tokens each."""
    blocks = []
    start = 0
    n_units = len(starts) - 1
    while start < n_units:
        end = int(np.searchsorted(starts, starts[start] + TOKENS_AT_A_TIME, side="right")) - 1
        stop = min(max(end, start + 1), n_units)
        blocks.append((start, stop))
        start = stop
    return blocks
