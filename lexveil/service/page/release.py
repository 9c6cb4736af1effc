"""What `lexveil privatize` would say of a text as a release, by its own checks. No ledger is opened or read."""

from __future__ import annotations

import numpy as np

from lexveil.accounting.budgets import DocumentBudget
from lexveil.artifacts.model import Model
from lexveil.config import LedgerParams
from lexveil.errors import LexveilError
from lexveil.ledger.amounts import NANO, cap_nano, costs
from lexveil.ledger.reservation import Exhausted
from lexveil.mechanisms.registry import Kernel
from lexveil.privatization.engine.engine import measurement_of
from lexveil.privatization.release import preconditions
from lexveil.privatization.settings import Settings


def refusal(settings: Settings, model: Model) -> str | None:
    """Why nothing would be released by these settings, whatever the text; None if something would.

    With ``release.max_recovery`` it can take seconds.

    Args:
        settings: of a release.
    """
    try:
        preconditions.check(settings, model)
        preconditions.require_named_subjects(model.params.ledger, has_subjects=False)
    except LexveilError as error:
        return str(error)
    return None


def beyond_cap(spent: float, budget: DocumentBudget, ledger: LedgerParams) -> str | None:
    """Why a text would not be released even if nothing of its subject ever was; None if it would be.

    Args:
        spent: epsilon of the text.
    """
    if ledger.cap is None or ledger.cap == "unlimited":  # what a ledger's own cap leaves, only the ledger knows
        return None
    limit = cap_nano(ledger.cap)
    if not spent or int(costs(np.array([spent]), budget.total)[0]) <= limit:
        return None
    if ledger.on_exhausted == "refuse":
        return str(Exhausted.of(limit, (1, 1), (1, 1)))
    return (
        f"the cap of {limit / NANO:g} epsilon per subject (params.yaml: ledger.cap) leaves nothing for a text that "
        f"spends {spent:.4g}: it would be withheld, and listed (ledger.on_exhausted). Ask for a smaller budget"
    )


def stamp(settings: Settings, mechanism: Kernel) -> str | None:
    """Why an output would be named as one without a guarantee; None if it has one, or is refused for that.

    Args:
        settings: of a release.
    """
    why = measurement_of(settings, mechanism).refusals
    if not why or not settings.without_guarantee:
        return None
    return (
        f"no guarantee can be given, {'; '.join(why)}; params.yaml: release.without_guarantee releases it all the "
        f"same, and the output is named OUT.{preconditions.STAMP}"
    )
