"""The reader who decodes an output word by word: exact Bayes over a channel and the public frequencies of words.

Seeing the output y of a token with budget ε, the reader holds each word w for likely in proportion to π(w)·Pr[M(w)=y],
and guesses the likeliest: no guess by the word is right more often (Bayes). Equal ones: the first in the vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from lexveil.mechanisms.base import ClosedForm
from lexveil.types import Floats, Ids


class Candidates(NamedTuple):
    """The likeliest words behind each of n outputs, likeliest first.

    Attributes:
        ids: (n, k); -1 where there are fewer.
        log_joint: (n, k) ln π(w)·Pr[M(w)=y], up to a constant of each output; -inf where there are fewer.
    """

    ids: Ids
    log_joint: Floats


class Adversary(Protocol):
    """Decodes outputs of one mechanism over one vocabulary."""

    def guess(self, outputs: Ids, epsilon: Floats) -> Ids:
        """The likeliest word behind each of n outputs, (n,); ``epsilon`` (n,) is what each token got."""

    def candidates(self, outputs: Ids, epsilon: Floats, k: int) -> Candidates:
        """The k likeliest words behind each of n outputs."""


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
