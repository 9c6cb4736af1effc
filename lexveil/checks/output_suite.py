"""What must hold of one run's output: one row per document, from sql/checks/output_lengths.sql."""

from __future__ import annotations

import great_expectations as gx
from great_expectations.expectations.expectation import Expectation

from lexveil.checks.rules import TOLERANCE, at_least_one_row, between, each_once, none_of, suite_of


def output_suite(stage: str, is_clean: bool) -> gx.ExpectationSuite:
    """No token is lost, none appears from nowhere, and the ledger accounts for every epsilon.

    Args:
        stage: what makes the run, as DVC names it.
        is_clean: for the baseline, whose text must be that of the input.
    """
    rebuild = (
        f"Do not pass this output on. `dvc repro --force {stage}` makes it again; "
        "if this stays, it is a fault of tasks/privatize.py"
    )
    rules: list[Expectation] = [
        at_least_one_row("There is at least one document", "the output has no document, at least 1 is needed", rebuild)
    ]
    rules.append(
        each_once(
            ["dataset", "doc_id"],
            "Every document is there once",
            "{unexpected:,} of {checked:,} documents are there more than once",
            rebuild,
        )
    )
    rules += [
        none_of(column, says, f"{{unexpected:,}} of {{checked:,}} documents {fault}", rebuild)
        for column, says, fault in COUNTED
    ]
    if is_clean:
        rules.append(
            none_of(
                "n_changed",
                "The clean baseline has the text of the input",
                "{unexpected:,} of {checked:,} documents of the clean baseline differ from the input",
                rebuild,
            )
        )
    rules += [
        between(
            "epsilon_overrun",
            "No text spends more than its plan grants (relative to it, where it is above 1; what is not planned is 0)",
            "{unexpected:,} of {checked:,} documents spend more than their plan grants "
            "({column} up to {worst:.3g}, limit {limit:g})",
            rebuild,
            high=TOLERANCE,
        ),
        between(
            "epsilon_difference",
            "The epsilon a document says it spent is the sum of its ledger",
            "{unexpected:,} of {checked:,} documents say another epsilon_spent than their ledger "
            "({column} up to {worst:.3g}, limit {limit:g})",
            rebuild,
            high=TOLERANCE,
        ),
    ]
    return suite_of("outputs", "documents", rules, rebuild)


# What must not occur: column, what holds instead, and how messages go on after "3 of 412 documents".
COUNTED = (
    ("is_lost", "Every document of the input is there", "of the input are not in the output"),
    ("is_stray", "There is no document that the input does not have", "are not in the input"),
    (
        "n_nulls",
        "Every document has an id and a text",
        "have no id or no text (up to {worst:.0f} of these, limit {limit:.0f})",
    ),
    (
        "n_miscarried",
        "Split, label and attribute are those of the input",
        "have another split, label or attribute than the input",
    ),
    (
        "n_misplaced",
        "The ledger numbers the tokens of a text from 0 without gaps",
        "have repeated or missing positions in their ledger (up to {worst:.0f} texts, limit {limit:.0f})",
    ),
    (
        "n_words_beyond",
        "A token is 1 to 3 words: n <= words <= 3 n for n tokens out",
        "put out fewer words than tokens, or more than 3 per token (by up to {worst:.0f} words, limit {limit:.0f})",
    ),
    (
        "n_unclear",
        "Every token has a known class and action, and the words it became",
        "have tokens whose class, action or number of words is not one of those known "
        "(up to {worst:.0f} tokens, limit {limit:.0f})",
    ),
    (
        "tokens_in_gap",
        "As many tokens went in as the ledger has",
        "took in another number of tokens than their ledger has (by up to {worst:.0f}, limit {limit:.0f})",
    ),
    (
        "tokens_out_gap",
        "As many tokens come out as went in, less those the ledger calls dropped",
        "put out another number of tokens than they took in, less the dropped ones "
        "(by up to {worst:.0f}, limit {limit:.0f})",
    ),
    (
        "words_out_gap",
        "As many words come out as the ledger has",
        "put out another number of words than their ledger has (by up to {worst:.0f}, limit {limit:.0f})",
    ),
    (
        "n_foreign",
        "Every output token is in the vocabulary, or accounted as kept or dropped",
        "have output tokens that are neither in the vocabulary nor kept (up to {worst:.0f} tokens, limit {limit:.0f})",
    ),
    (
        "unprotected_gap",
        "n_unprotected counts the kept tokens",
        "count another number of unprotected tokens than their ledger keeps (by up to {worst:.0f}, limit {limit:.0f})",
    ),
    (
        "n_mispriced",
        "Epsilon is greater than 0 exactly for perturbed tokens; kept, dropped and sampled ones carry 0",
        "have perturbed tokens without a finite epsilon, or an epsilon on tokens that were not perturbed "
        "(up to {worst:.0f} tokens, limit {limit:.0f})",
    ),
)
