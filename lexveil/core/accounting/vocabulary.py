"""Vocabulary of a mechanism: the words that it accepts as input and returns as output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from lexveil.base.types import Floats, ModelRows, Vectors, WordNumbers, WrittenNumbers
from lexveil.core.accounting.budgets import Policy
from lexveil.core.text.normal_forms import is_punctuation


@dataclass(frozen=True)
class Vocabulary:
    """The W input and output words of a mechanism, as a subset of the rows of an embedding.

    Attributes:
        rows: (W,) row of the embedding, ascending.
        number: (V,) number of each embedding row among the W words; -1 if the row is not among
            them.
        vectors: (W, p) float32.
    """

    rows: ModelRows
    number: WordNumbers
    vectors: Vectors

    @cached_property
    def lengths(self) -> Floats:
        """(W,) Euclidean length of each word vector."""
        squares = (
            np.linalg.norm(part.astype(np.float64), axis=1)
            for part in np.array_split(self.vectors, self.PARTS)
        )
        return np.concatenate([*squares])

    def rows_of(self, numbers: WordNumbers | WrittenNumbers) -> ModelRows:
        """Return the embedding row of each of n word numbers; -1 for a number that stands for no
        word.
        """
        if not len(self.rows):
            return ModelRows(numbers)
        return ModelRows(np.where(numbers >= 0, self.rows[numbers], -1))

    PARTS: ClassVar = 16  # convert in parts, because float64 takes twice the memory

    @classmethod
    def of(cls, tokens: Sequence[str], vectors: Vectors, policy: Policy) -> Vocabulary:
        """Build the mechanism's vocabulary from all tokens of an embedding. Punctuation is left
        out if the policy does not perturb it, so that no word is replaced by a comma.
        """
        keep = np.ones(len(tokens), dtype=bool)
        if policy.punctuation != "perturb":
            keep = np.array([not is_punctuation(token) for token in tokens], dtype=bool)
        rows = np.flatnonzero(keep)
        number = np.full(len(tokens), -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        return cls(ModelRows(rows), WordNumbers(number), np.ascontiguousarray(vectors[rows]))
