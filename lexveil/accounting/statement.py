"""A privacy record as a few lines for people, and beside them what is private to the operator."""

from __future__ import annotations

from collections.abc import Iterator

from lexveil.accounting.operator_report import LedgerCosts, OperatorReport
from lexveil.accounting.record import PrivacyRecord

# From here on a statement warns: shares of all tokens, and of the perturbed ones.
MUCH_UNPROTECTED = 0.3
MUCH_UNCHANGED = 0.8

PRIVATE = "private to the operator, as secret as the source:"


def statement(record: PrivacyRecord, operator: OperatorReport | None = None) -> list[str]:
    """What was done and what is guaranteed; then, marked, what compares source and output, and what it cost."""
    counts = record.counts
    model = f", {record.model}" if record.model else ""
    lines = [] if record.protection is None else [record.protection.sentence]
    lines += [f"mechanism {record.mechanism}, strategy {record.strategy}, mode {record.mode}{model}"]
    if "n_tokens" in counts.model_fields_set:
        budgets = ", ".join(f"{budget:.4g}" for budget in record.document_budget.values())
        largest = record.spent.max_token_epsilon if record.spent else None
        lines += [
            f"{counts.n_texts:,} texts, {counts.n_tokens:,} tokens: {counts.n_perturbed:,} perturbed, "
            f"{counts.n_sampled:,} replaced by random words, {counts.n_dropped:,} dropped, "
            f"{counts.n_kept:,} unprotected",
            _budget(record, budgets, largest),
        ]
        if counts.found:
            found = (
                f"{kind} {n:,} {action}" for kind, actions in counts.found.items() for action, n in actions.items()
            )
            lines.append(f"found: {', '.join(found)}")
        if counts.n_tokens and counts.n_kept / counts.n_tokens > MUCH_UNPROTECTED:
            lines.append(
                f"CAUTION: {counts.n_kept / counts.n_tokens:.0%} of all tokens are unprotected, whatever epsilon is "
                "(see the conditions below)"
            )
    if record.without_guarantee:
        lines.append("CAUTION: released although no guarantee can be given")
    lines += [f"guarantee: {record.guarantee.formula}", record.guarantee.statement]
    lines += [f"  - {reason}" for reason in record.guarantee.because]
    if record.guarantee.not_covered is not None:
        lines.append(record.guarantee.not_covered)
    if counts.n_formula_cells:
        lines.append(
            f"CAUTION: {counts.n_formula_cells:,} rewritten fields, the first in row {counts.first_formula_row:,}, "
            "begin like a formula, which spreadsheets compute; formulas: quote puts an apostrophe before such texts"
        )
    if record.meaning is not None:
        lines += record.meaning.sentences
    if record.release:
        lines.append(f"ledger: paid as {record.release.id}")
    return [*lines, PRIVATE, *(f"  {line}" for line in _private(operator))] if operator else lines


def _budget(record: PrivacyRecord, budgets: str, largest: float | None) -> str:
    unit = f"(1 / {record.metric})"
    if record.protection is not None:
        return f"each perturbed token spends epsilon {record.base_epsilon:.4g} {unit}, whatever the length of its text"
    return f"budget of each text: {budgets} {unit}" + (
        "" if largest is None else f"; one token spends at most {largest:.4g}"
    )


def _private(operator: OperatorReport) -> Iterator[str]:
    counts = operator.counts
    if operator.coverage is not None:
        yield f"the vocabulary knows {operator.coverage:.1%} of the words"
    if counts.share_unchanged is not None:
        yield f"{counts.share_unchanged:.1%} of the perturbed tokens came out unchanged"
        if counts.share_unchanged > MUCH_UNCHANGED:
            yield "CAUTION: hardly a word changed: this epsilon is so large that the bound means little"
    if operator.documents is not None:
        yield operator.documents.sentence
        if operator.documents.caution is not None:
            yield operator.documents.caution
    if operator.ledger:
        yield from _cost(operator.ledger)


def _cost(costs: LedgerCosts) -> Iterator[str]:
    if costs.documents_withheld:
        yield (
            f"CAUTION: {costs.documents_withheld:,} of {costs.documents_requested:,} rows are withheld and not charged,"
            f" because the budget of {costs.subjects_exhausted:,} subjects is exhausted (cap {costs.cap:g}); they are "
            "listed beside the output, in .withheld.csv"
        )
    yield f"ledger: {costs.epsilon_charged:,.6g} epsilon charged, of {costs.subjects_charged:,} subjects"
