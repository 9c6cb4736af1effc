"""Construction of the privacy record of a run and of the operator's private report, from the
results of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lexveil.base.logs import PUBLIC, logger
from lexveil.base.runtime.hashes import code_hash, version
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.measurements import Measurement
from lexveil.core.accounting.operator_report import SECRECY, OperatorReport
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.release.charge import Charge
from lexveil.release.engine.counts import SpendHistogram, Tally, coverage
from lexveil.release.engine.records import record_of
from lexveil.release.linkage import linkage_of
from lexveil.release.preconditions import Checked, LanguageCheck

LOG = logger(__name__)


@dataclass(slots=True)
class Outcome:
    """Results of a run over its input, summed chunk by chunk.

    Attributes:
        budget: the budget of each document; 0 until all texts are counted, if the budget depends on
            the texts.
        columns: the text columns.
        others: the columns that are published unchanged; None if texts come without a table.
        n_columns: number of text columns, each with one text per row; None if a column may have
            several texts per row.
        n_rows: number of rows that were read.
    """

    budget: DocumentBudget
    columns: tuple[str, ...]
    others: tuple[str, ...] | None
    n_columns: int | None
    n_rows: int = 0
    tally: Tally = field(default_factory=Tally)
    spent: SpendHistogram = field(default_factory=lambda: SpendHistogram(0.0))


def release_record(
    checked: Checked,
    outcome: Outcome,
    measurement: Measurement,
    charge: Charge,
    **formulas: int | None,
) -> PrivacyRecord:
    """Return the privacy record of a run over a user's texts, which is published with the output.

    Args:
        measurement: the mechanism of the run, with its proven privacy bound.
        formulas: counts of the written fields that a spreadsheet would evaluate as formulas.
    """
    engine = checked.engine
    settings = engine.settings
    spent = outcome.spent
    is_release = settings.mode == "release"
    if checked.audit is None and is_release:
        LOG.info(f"the record cites no audit: {checked.why_no_audit}", extra=PUBLIC)
    guarantee = engine.guarantee(measurement, outcome.n_columns)
    stamp = {"without_guarantee": True} if is_release and not guarantee.holds else {}
    return record_of(
        settings,
        engine,
        outcome.tally.counts().public(n_rows=spent.n, **formulas),
        **stamp,
        code=code_hash(),
        average_words=outcome.budget.average_words,
        document_budget={"input": outcome.budget.total},
        guarantee=guarantee,
        linkage=linkage_of(settings, engine.model),
        meaning=engine.meaning(spent.least_of_token, spent.most_of_token),
        spent=spent.summary(),
        columns=list(outcome.columns),
        other_columns=None if outcome.others is None else list(outcome.others),
        release=charge.entry(),
        audit=checked.audit,
        model=checked.model,
        made_with=checked.made_with,
    )


def operator_report(
    checked: Checked, outcome: Outcome, language: LanguageCheck, charge: Charge
) -> OperatorReport:
    """Return the report on the rewritten texts that only the operator may see."""
    return OperatorReport(
        schema_version=2,
        secrecy=SECRECY,
        lexveil=version(),
        model=checked.model,
        rows_read=outcome.n_rows,
        counts=outcome.tally.counts(),
        coverage=coverage(outcome.tally.actions),
        documents=outcome.tally.document_shares(),
        language=language.finding(),
        **({} if language.n_emptied is None else {"emptied": language.n_emptied}),
        ledger=charge.costs(),
    )
