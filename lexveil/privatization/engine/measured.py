"""The measurement of a run, composed of the objects that run, and the statement that follows from it."""

from __future__ import annotations

from dataclasses import replace

from lexveil.accounting import measurements
from lexveil.accounting.budgets import DEFAULT_FOUND, DocumentBudget
from lexveil.accounting.guarantee import Guarantee, StructureFigures
from lexveil.accounting.measurements import Measurement
from lexveil.mechanisms.registry import Kernel
from lexveil.privatization.settings import Settings


def measurement_of(
    settings: Settings,
    mechanism: Kernel,
    budget: DocumentBudget | None = None,
    n_columns: int = 1,
    *,
    withholds: bool = False,
) -> Measurement:
    """What runs, with what is proven of it.

    Args:
        budget: what each document may spend; None where there are several.
        n_columns: text columns of a document.
        withholds: rows are left out where the ledger has nothing left for their subject.
    """
    token = measurements.of_token(mechanism)
    text = measurements.over_tokens(token, settings.policy, seed_is_known=settings.seed is not None)
    text = measurements.over_columns(text, n_columns)
    if settings.consistent:
        text = measurements.repeated_alike(text)
    if settings.keep_layout:
        text = measurements.with_layout_copied(text)
    if settings.shares is not None:
        text = measurements.with_shares(text, settings.shares)
    if (detection := settings.detection) is not None:
        text = measurements.with_detectors(text, detection.sources, detection.actions, DEFAULT_FOUND)
    text = measurements.under_strategy(text, settings.strategy, settings.budget_source, budget)
    return measurements.with_rows_withheld(text) if withholds else text


def in_release(settings: Settings) -> Settings:
    """The same settings in a release: the noise is the system's, and the budget a public number."""
    average = None if settings.average_words == "data" else settings.average_words
    cap = None if settings.max_token_epsilon == "none" else settings.max_token_epsilon
    return replace(settings, seed=None, average_words=average, max_token_epsilon=cap)


def guarantee_of(
    measurement: Measurement,
    settings: Settings,
    mechanism: Kernel,
    structure: StructureFigures | None,
    n_columns: int = 1,
) -> Guarantee:
    """The statement of a record; of an experiment, with that of a release with the same settings."""
    stated = measurement.guarantee(structure)
    if settings.mode != "experiment":
        return stated
    release = measurement_of(in_release(settings), mechanism, n_columns=n_columns)
    return stated.model_copy(update={"in_release": release.guarantee(structure)})
