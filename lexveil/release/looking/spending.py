"""Prediction of what a release of a file would cost each subject (the person behind the texts), and
of the budget that the subjects have left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.results import Number, Result
from lexveil.io.config import LedgerParams
from lexveil.io.formats.chunks import Chunk
from lexveil.release.charge import subjects_of
from lexveil.release.engine.counts import BatchCounts
from lexveil.release.engine.engine import Engine
from lexveil.release.ledger.amounts import NANO, cap_nano, costs
from lexveil.release.ledger.caps import Cap
from lexveil.release.ledger.glance import spent_in

LOG = logger(__name__)

MOST_SUBJECTS = 1_000_000  # largest number of subjects that are counted, because each takes memory


class SubjectSpending(Result):
    """Epsilon that a release would cost the subjects of its texts, and the budget that they have
    left under the cap.

    Attributes:
        subjects: Number of subjects of the texts. If no column names subjects, each text is its own
            subject.
        median: Median cost of a subject.
        largest: Largest cost of a subject.
        longest_row: Largest number of perturbed tokens of a row that costs no more than the cap;
            null if the cost of a row does not grow with its length.
        charged_before: Number of subjects that earlier releases have charged.
        left: Smallest budget that a subject has left before this release; null without a cap.
        short: Number of subjects that have less budget left than the release costs.
        releases: Number of such releases that the cap allows before a row is withheld.
    """

    subjects: int
    median: Number
    largest: Number
    longest_row: int | None
    charged_before: int
    left: Number | None
    short: int
    releases: int | None


@dataclass(slots=True)
class Costs:
    """The total cost of each subject in nano-epsilon, by the subject's key."""

    by_key: dict[str, int] = field(default_factory=dict)

    @property
    def has_more(self) -> bool:
        """Whether the input has more subjects than can be counted."""
        return len(self.by_key) > MOST_SUBJECTS

    def add(
        self, chunk: Chunk, counted: BatchCounts, engine: Engine, budget: DocumentBudget
    ) -> None:
        """Add the costs of the rows of a chunk."""
        if self.has_more:
            return
        is_own = chunk.subjects is None and counted.keys is not None
        keys = counted.keys if is_own else subjects_of(chunk)
        assert keys is not None
        spent = costs(engine.spends(counted, budget), budget.total or 1.0)
        for key, nano in zip(keys, spent.tolist(), strict=True):
            self.by_key[key] = self.by_key.get(key, 0) + nano


def spending_of(
    found: Costs, budget: DocumentBudget, cap: Cap, ledger: LedgerParams
) -> SubjectSpending | None:
    """Return what a release would cost its subjects. The result is None without subjects, or with
    more subjects than are counted.

    Args:
        cap: the budget cap of a subject that the release would have.
    """
    if found.has_more or not found.by_key:
        return None
    spent = _spent(ledger, found)
    cost = np.array(list(found.by_key.values()), dtype=np.int64)
    before = np.array([spent.get(key, 0) for key in found.by_key], dtype=np.int64)
    limit: dict[str, Any] = {"left": None, "short": 0, "releases": None, "longest_row": None}
    if isinstance(cap, float) and cap:
        left = np.maximum(cap_nano(cap) - before, 0)
        times = left[cost > 0] // cost[cost > 0]
        limit = {
            "left": float(left.min()) / NANO,
            "short": int((left < cost).sum()),
            "releases": int(times.min()) if len(times) else None,
            "longest_row": budget.longest(cap),
        }
    return SubjectSpending(
        subjects=len(cost),
        median=float(np.median(cost)) / NANO,
        largest=float(cost.max()) / NANO,
        charged_before=int((before > 0).sum()),
        **limit,
    )


def _spent(ledger: LedgerParams, found: Costs) -> dict[str, int]:
    """Return the epsilon that subjects have spent so far. If the ledger cannot be read, a warning
    is logged.
    """
    try:
        return spent_in(ledger.folder, ledger.database, found.by_key)
    except RequestError as error:
        LOG.warning(f"the spending of the subjects is not known: {error}")
        return {}
