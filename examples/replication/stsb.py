"""STS-B: a regression task, the similarity of two sentences, scored by Pearson and Spearman
correlation.

Source: 1-Diffractor, section 4.1.2 and Table 1: the average of both correlations, of a model that
is trained on rewritten pairs and scored on rewritten pairs. The paper's model is BERT; this module
uses linear regression on five similarities of a pair.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.types import Floats
from lexveil.core.text.tokenize import sentences
from lexveil.lab.evaluation.metrics.prediction import HELD_OUT, TRAIN
from lexveil.lab.report.records import Key

T = TypeVar("T")

DATASET = "stsb"
MEASURE = "utility_pearson_spearman"
SMALLEST = 3  # smallest number of pairs of each split: fewer have no correlation


class Correlation(NamedTuple):
    """Pearson's and Spearman's correlation, each in [-1, 1]."""

    pearson: float
    spearman: float

    @property
    def mean(self) -> float:
        """Average of both, the score of 1-Diffractor Table 1."""
        return (self.pearson + self.spearman) / 2


def correlations(truth: Floats, predicted: Floats) -> Correlation:
    """Return both correlations of n scores with n predictions; 0 if the scores or the predictions
    are constant.
    """
    from scipy.stats import rankdata

    return Correlation(_pearson(truth, predicted), _pearson(rankdata(truth), rankdata(predicted)))


def _pearson(first: Floats, second: Floats) -> float:
    centred = [values - values.mean() for values in (first, second)]
    spread = math.sqrt(float(centred[0] @ centred[0]) * float(centred[1] @ centred[1]))
    return float(centred[0] @ centred[1]) / spread if spread else 0.0


def similarities(first: Sequence[str], second: Sequence[str]) -> Floats:
    """Return (n, 5) similarities of n pairs: cosine of their words by tf-idf, share of common
    words, share of common pairs of neighbours, ratio of their lengths, and cosine of their letter
    trigrams.
    """
    words = [[_words(text) for text in texts] for texts in (first, second)]
    every = [bag for texts in words for bag in texts]
    n_texts = Counter(word for bag in every for word in set(bag))
    idf = {word: math.log((1 + len(every)) / (1 + n)) + 1 for word, n in n_texts.items()}
    rows = []
    for one, other, text, text_b in zip(*words, first, second, strict=True):
        lengths = (len(one), len(other))
        rows.append(
            [
                _cosine(_weighed(one, idf), _weighed(other, idf)),
                _common(set(one), set(other)),
                _common(_pairs(one), _pairs(other)),
                min(lengths) / max(*lengths, 1),
                _cosine(_threes(text), _threes(text_b)),
            ]
        )
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def _words(text: str) -> list[str]:
    return [word for sentence in sentences(text) for word in sentence]


def _weighed(words: Sequence[str], idf: dict[str, float]) -> dict[str, float]:
    return {word: n * idf[word] for word, n in Counter(words).items()}


def _pairs(words: Sequence[str]) -> set[tuple[str, str]]:
    return set(itertools.pairwise(words))


def _threes(text: str) -> dict[str, float]:
    lower = text.lower()
    threes = Counter(lower[start : start + 3] for start in range(len(lower) - 2))
    return {key: float(n) for key, n in threes.items()}


def _cosine(one: dict[str, float], other: dict[str, float]) -> float:
    product = sum(value * other.get(key, 0.0) for key, value in one.items())
    norms = [math.sqrt(sum(value**2 for value in each.values())) for each in (one, other)]
    return product / (norms[0] * norms[1]) if all(norms) else 0.0


def _common(one: set[T], other: set[T]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def regression(
    train: tuple[Sequence[str], Sequence[str], Floats],
    test: tuple[Sequence[str], Sequence[str], Floats],
) -> Correlation:
    """Learn scores from the similarities of pairs by least squares, and correlate the predictions
    with the true scores.

    Args:
        train, test: first texts, second texts and scores.
    """
    learnt, asked = (
        _with_constant(similarities(first, second)) for first, second, _ in (train, test)
    )
    weights = np.linalg.lstsq(learnt, train[2], rcond=None)[0]
    return correlations(test[2], asked @ weights)


def _with_constant(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])


def of_run(key: Key) -> Correlation | None:
    """Return the score of one run of the project in this folder; None if the run has too few pairs
    of STS-B.
    """
    table = pq.read_table(
        paths.private(*key) / "documents.parquet",
        columns=["dataset", "split", "label", "text", "text_b"],
        filters=[("dataset", "=", DATASET)],
    )
    splits = table.column("split").to_pylist()
    held_out = next((name for name in HELD_OUT if name in splits), None)
    rows = table.to_pylist()
    parts = []
    for split in (TRAIN, held_out):
        own = [row for row in rows if row["split"] == split]
        scores = np.array([float(row["label"]) for row in own])
        parts.append(([row["text"] for row in own], [row["text_b"] for row in own], scores))
    if min(len(scores) for _, _, scores in parts) < SMALLEST:
        return None
    return regression(parts[0], parts[1])
