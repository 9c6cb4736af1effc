"""The unigram adversary by the whole table, and texts as contextual adversaries see them."""

from collections.abc import Sequence

import numpy as np

from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.base import Mechanism
from lexveil.readers.adversary import Adversary, Candidates
from lexveil.readers.seen_tokens import SeenTokens

Seen = int | str | None  # a number of an output, a word that was kept, or nothing


class TableAdversary(Adversary):
    """Exact Bayes by the table Pr[M(w)=y] of all words at each epsilon."""

    def __init__(self, mechanism: Mechanism, prior: Floats) -> None:
        self.mechanism = mechanism
        self.prior = prior

    def joint(self, epsilon: float) -> Floats:
        """ln π(w)·Pr[M(w)=y], (W, W) by w and y."""
        words = np.arange(len(self.prior))
        return (
            self.mechanism.log_pmf(words, np.full(len(words), epsilon))
            + np.log(self.prior)[:, None]
        )

    def candidates(
        self, outputs: Ids, epsilon: Floats, k: int, before: Ids | None = None
    ) -> Candidates:
        levels, level = np.unique(epsilon, return_inverse=True)
        tables = np.array([self.joint(each) for each in levels]).reshape(
            -1, len(self.prior), len(self.prior)
        )
        joint = tables[level, :, outputs]
        ids = np.argsort(-joint, axis=1, kind="stable")[:, :k]
        return Candidates(ids, np.take_along_axis(joint, ids, axis=1))

    def log_likelihood(
        self, words: Ids, outputs: Ids, epsilon: Floats, before: Ids | None = None
    ) -> Floats:
        levels, level = np.unique(epsilon, return_inverse=True)
        tables = np.array([self.joint(each) for each in levels])
        return tables[level, words, outputs] - np.log(self.prior)[words]


def tokens(texts: Sequence[Sequence[Seen]], epsilon: float = 1.0) -> SeenTokens:
    every = [seen for text in texts for seen in text]
    return SeenTokens(
        np.repeat(np.arange(len(texts)), [len(text) for text in texts]),
        np.array([seen if isinstance(seen, int) else -1 for seen in every], dtype=np.int64),
        np.full(len(every), epsilon),
        [seen if isinstance(seen, str) else None for seen in every],
    )
