"""The distribution of epsilon over the documents of an output, in constant memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.accounting.record import SpendBins, SpendSummary
from lexveil.privatization.engine.tally import ExactSum

BINS = 20


class SpendHistogram:
    """Epsilon spent per document: least, most, mean, and how many documents spent which part of the budget."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.n = 0
        self.least, self.most = np.inf, 0.0
        self.least_of_token, self.most_of_token = np.inf, 0.0  # of those that spend anything
        self.total = ExactSum()
        self.bins = np.zeros(BINS, dtype=np.int64)

    def add(self, spent: npt.NDArray[np.float64], per_token: npt.NDArray[np.float64]) -> None:
        """Count documents by what they spent, and on each of their tokens."""
        if not len(spent):
            return
        self.n += len(spent)
        self.least, self.most = min(self.least, float(spent.min())), max(self.most, float(spent.max()))
        self.most_of_token = max(self.most_of_token, float(per_token.max()))
        self.least_of_token = min(self.least_of_token, float(per_token.min(initial=np.inf, where=per_token > 0)))
        self.total.add(spent)
        part = spent / self.budget if self.budget > 0 else np.zeros(len(spent))
        # All of the budget falls into the last bin, whatever the rounding of a sum of equal parts.
        self.bins += np.bincount(np.clip((part * BINS).astype(np.int64), 0, BINS - 1), minlength=BINS)

    def summary(self) -> SpendSummary:
        """The distribution as a record has it."""
        return SpendSummary(
            documents=self.n,
            least=self.least if self.n else None,
            most=self.most if self.n else None,
            mean=float(self.total) / self.n if self.n else None,
            max_token_epsilon=self.most_of_token if self.n else None,
            histogram=SpendBins(parts_of_budget=BINS, documents=self.bins.tolist()),
        )
