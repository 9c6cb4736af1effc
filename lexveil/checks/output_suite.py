"""Expectations for the output of one run: one row per document, from
sql/checks/output_lengths.sql.
"""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import TOLERANCE, at_least_one, between, each_once, none_of, suite_of

RULES = (
    at_least_one("document"),
    each_once("dataset", "doc_id"),
    none_of(
        "is_lost", "Every document of the input is there", "of the input are not in the output"
    ),
    none_of(
        "is_stray", "There is no document that the input does not have", "are not in the input"
    ),
    none_of("n_nulls", "Every document has an id and a text", "have no id or no text"),
    none_of(
        "n_miscarried",
        "Split, label and attribute are those of the input",
        "have another split, label or attribute than the input",
    ),
    none_of(
        "n_misplaced",
        "The token log numbers the tokens of a text from 0 without gaps",
        "have repeated or missing positions in their token log",
    ),
    none_of(
        "n_words_beyond",
        "A token is 1 to 3 words: n <= words <= 3 n for n tokens out",
        "put out fewer words than tokens, or more than 3 per token",
    ),
    none_of(
        "n_unclear",
        "Every token has a known class and action, and the words it became",
        "have tokens whose class, action or number of words is not one of those known",
    ),
    none_of(
        "tokens_in_gap",
        "As many tokens went in as the token log has",
        "took in another number of tokens than their token log has",
    ),
    none_of(
        "tokens_out_gap",
        "As many tokens come out as went in, less those the token log calls dropped",
        "put out another number of tokens than they took in, less the dropped ones",
    ),
    none_of(
        "words_out_gap",
        "As many words come out as the token log has",
        "put out another number of words than their token log has",
    ),
    none_of(
        "n_foreign",
        "Every output token is in the vocabulary, or accounted as kept or dropped",
        "have output tokens that are neither in the vocabulary nor kept",
    ),
    none_of(
        "unprotected_gap",
        "n_unprotected counts the kept tokens",
        "count another number of unprotected tokens than their token log keeps",
    ),
    none_of(
        "n_mispriced",
        "Epsilon is greater than 0 exactly for perturbed tokens; kept, dropped and sampled "
        "ones carry 0",
        "have perturbed tokens without a finite epsilon, or an epsilon on tokens that were "
        "not perturbed",
    ),
)
CLEAN = none_of(
    "n_changed",
    "The clean baseline has the text of the input",
    "of the clean baseline differ from the input",
)
SPENT = (
    between(
        "epsilon_overrun",
        "No text spends more than its plan grants (relative to it, where it is above 1; what "
        "is not planned is 0)",
        "spend more than their plan grants",
        high=TOLERANCE,
    ),
    between(
        "epsilon_difference",
        "The epsilon a document says it spent is the sum of its token log",
        "say another epsilon_spent than their token log",
        high=TOLERANCE,
    ),
)


def output_suite(stage: str, is_clean: bool) -> gx.ExpectationSuite:
    """Suite for the output of a run: no token is lost or added, and the token log accounts for
    every epsilon.

    Args:
        stage: name in DVC of the stage that makes the run.
        is_clean: whether the run is the clean baseline, whose text must equal the input.
    """
    rebuild = (
        f"Do not pass this output on. `dvc repro --force {stage}` makes it again; "
        "if this stays, it is a fault of tasks/privatize.py"
    )
    return suite_of(
        "outputs", "documents", (*RULES, *([CLEAN] if is_clean else []), *SPENT), rebuild
    )
