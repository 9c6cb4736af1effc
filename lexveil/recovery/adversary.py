"""The reader who decodes an output word by word: exact Bayes over a channel and the public frequencies of words.

Seeing the output y of a token with budget ε, the reader holds each word w for likely in proportion to π(w)·Pr[M(w)=y],
and guesses the likeliest: no guess by the word is right more often (Bayes). Equal ones: the first in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from lexveil.mechanisms.base import ClosedForm
from lexveil.types import Floats, Ids, Rows

OUTPUTS = 128  # whose distances to all words are held at a time


class Candidates(NamedTuple):
    """The likeliest words behind each of n outputs, likeliest first.

    Attributes:
        ids: (n, k); -1 where there are fewer.
        log_joint: (n, k) ln π(w)·Pr[M(w)=y], up to a constant of each output; -inf where there are fewer.
    """

    ids: Ids
    log_joint: Floats

    @classmethod
    def unknown(cls, n: int, k: int) -> Candidates:
        """None yet, to be filled by a kernel."""
        return cls(np.full((n, k), -1, dtype=np.int64), np.full((n, k), -np.inf))


class Adversary(Protocol):
    """Decodes outputs of one mechanism over one vocabulary."""

    def guess(self, outputs: Ids, epsilon: Floats) -> Ids:
        """The likeliest word behind each of n outputs, (n,); ``epsilon`` (n,) is what each token got."""

    def candidates(self, outputs: Ids, epsilon: Floats, k: int) -> Candidates:
        """The k likeliest words behind each of n outputs."""


def by_output(outputs: Ids) -> Iterator[tuple[Ids, Rows, Rows]]:
    """Blocks of different outputs, each decoded for all of its tokens at once, since it has the same distances.

    Yields:
        At most ``OUTPUTS`` outputs (m,); where the tokens of each begin (m + 1,); the tokens of all outputs (n,).
    """
    tokens = np.argsort(outputs, kind="stable").astype(np.int64)
    distinct, starts = np.unique(outputs[tokens], return_index=True)
    starts = np.append(starts, len(outputs)).astype(np.int64)
    for start in range(0, len(distinct), OUTPUTS):
        some = distinct[start : start + OUTPUTS]
        yield some, starts[start : start + len(some) + 1], tokens


class TableAdversary:
    """Exact Bayes by the whole table Pr[M(w)=y] of each epsilon: for small vocabularies, and to test the others."""

    def __init__(self, mechanism: ClosedForm, prior: Floats) -> None:
        self.mechanism, self.prior = mechanism, prior

    def guess(self, outputs: Ids, epsilon: Floats) -> Ids:
        """See ``Adversary``."""
        return self.candidates(outputs, epsilon, 1).ids[:, 0]

    def candidates(self, outputs: Ids, epsilon: Floats, k: int) -> Candidates:
        """See ``Adversary``."""
        words, n = np.arange(len(self.prior)), len(outputs)
        k = min(k, len(words))
        found = Candidates(np.empty((n, k), dtype=np.int64), np.empty((n, k)))
        for value in np.unique(epsilon):
            at = np.flatnonzero(epsilon == value)
            table = self.mechanism.log_pmf(words, np.full(len(words), value)) + np.log(self.prior)[:, None]
            joint = table[:, outputs[at]].T
            found.ids[at] = np.argsort(-joint, axis=1, kind="stable")[:, :k]
            found.log_joint[at] = np.take_along_axis(joint, found.ids[at], axis=1)
        return found
