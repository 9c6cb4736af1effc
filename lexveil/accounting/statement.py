"""A privacy record as a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from lexveil.accounting.record import Counts, LedgerEntry, PrivacyRecord

# From here on a statement warns: shares of all tokens, and of the perturbed ones.
MUCH_UNPROTECTED = 0.3
MUCH_UNCHANGED = 0.8


def statement(record: PrivacyRecord) -> list[str]:
    """What was done, what is guaranteed, what it cost, and cautions."""
    counts = record.counts
    lines = [f"mechanism {record.mechanism}, strategy {record.strategy}, mode {record.mode}"]
    if "n_tokens_in" in counts.model_fields_set:
        share = counts.share_unchanged
        unchanged = "" if share is None else f" ({share:.1%} came out unchanged)"
        budgets = ", ".join(f"{budget:.4g}" for budget in record.document_budget.values())
        lines += [
            f"{counts.n_texts:,} texts, {counts.n_tokens_in:,} tokens: {counts.n_perturbed:,} perturbed{unchanged}, "
            f"{counts.n_sampled:,} replaced by random words, {counts.n_dropped:,} dropped, "
            f"{counts.n_kept:,} unprotected",
            f"budget of each text: {budgets} (1 / {record.metric})",
            *(f"CAUTION: {caution}" for caution in _cautions(counts)),
        ]
    lines += [f"guarantee: {record.guarantee.formula}", record.guarantee.statement]
    lines += [f"  - {reason}" for reason in record.guarantee.because]
    if counts.n_formula_cells:
        lines.append(
            f"CAUTION: {counts.n_formula_cells:,} rewritten fields, the first in row {counts.first_formula_row:,}, "
            "begin like a formula, which spreadsheets compute; --formulas quote puts an apostrophe before such texts"
        )
    return [*lines, *(_cost(record.release) if record.release else ())]


def _cautions(counts: Counts) -> Iterator[str]:
    """What a guarantee does not say and a person would want to know."""
    unprotected = counts.n_kept / counts.n_tokens_in if counts.n_tokens_in else 0.0
    if unprotected > MUCH_UNPROTECTED:
        yield f"{unprotected:.0%} of all tokens are unprotected, whatever epsilon is (see the conditions below)"
    if (counts.share_unchanged or 0.0) > MUCH_UNCHANGED:
        yield (
            f"{counts.share_unchanged:.0%} of the perturbed tokens came out unchanged: this epsilon is so large "
            "that the bound below means little"
        )


def _cost(entry: LedgerEntry) -> Iterator[str]:
    if entry.withheld:
        yield (
            f"CAUTION: {entry.withheld:,} of {entry.documents:,} rows are withheld, because the budget of "
            f"{entry.exhausted:,} subjects is exhausted (cap {entry.cap:g}); they are listed beside the output, in "
            ".withheld.csv"
        )
    yield f"ledger: {entry.epsilon:,.6g} epsilon of {entry.subjects:,} subjects, as {entry.id}"
