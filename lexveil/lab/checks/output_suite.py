"""Expectations for the output of one run: one row per document, from
sql/checks/output_lengths.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

RULES = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one document",
        meta={"fault": "there is no document, at least 1 is needed"},
    ),
    gxe.ExpectCompoundColumnsToBeUnique(
        column_list=["dataset", "doc_id"],
        description="No two rows have the same dataset, doc_id",
        meta={"fault": "{subject} are there more than once (dataset, doc_id)"},
    ),
    zero(
        "is_lost",
        holds="Every document of the input is there",
        fault="{subject} of the input are not in the output",
    ),
    zero(
        "is_stray",
        holds="There is no document that the input does not have",
        fault="{subject} are not in the input",
    ),
    zero(
        "n_nulls",
        holds="Every document has an id and a text",
        fault="{subject} have no id or no text",
    ),
    zero(
        "n_miscarried",
        holds="Split, label and attribute equal those of the input",
        fault="{subject} have another split, label or attribute than the input",
    ),
    zero(
        "n_misplaced",
        holds="The token log numbers the tokens of a text from 0 without gaps",
        fault="{subject} have repeated or missing positions in their token log",
    ),
    zero(
        "n_words_beyond",
        holds="A token is 1 to 3 words: n <= words <= 3 n for n tokens out",
        fault="{subject} put out fewer words than tokens, or more than 3 per token",
    ),
    zero(
        "n_unclear",
        holds="Every token has a known class and action, and the words it became",
        fault=(
            "{subject} have tokens whose class, action or number of words is not one of those known"
        ),
    ),
    zero(
        "tokens_in_gap",
        holds="As many tokens went in as the token log has",
        fault="{subject} took in another number of tokens than their token log has",
    ),
    zero(
        "tokens_out_gap",
        holds="As many tokens come out as went in, less those the token log calls dropped",
        fault=(
            "{subject} put out another number of tokens than they took in, less the dropped ones"
        ),
    ),
    zero(
        "words_out_gap",
        holds="As many words come out as the token log has",
        fault="{subject} put out another number of words than their token log has",
    ),
    zero(
        "n_foreign",
        holds="Every output token is in the vocabulary, or accounted as kept or dropped",
        fault="{subject} have output tokens that are neither in the vocabulary nor kept",
    ),
    zero(
        "unprotected_gap",
        holds="n_unprotected counts the kept tokens",
        fault="{subject} count another number of unprotected tokens than their token log keeps",
    ),
    zero(
        "n_mispriced",
        holds=(
            "Epsilon is greater than 0 exactly for perturbed tokens; kept, dropped and "
            "sampled "
            "ones carry 0"
        ),
        fault=(
            "{subject} have perturbed tokens without a finite epsilon, or an epsilon on "
            "tokens that were "
            "not perturbed"
        ),
    ),
)
CLEAN = zero(
    "n_changed",
    holds="The clean baseline has the text of the input",
    fault="{subject} of the clean baseline differ from the input",
)
SPENT = (
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_overrun",
        max_value=TOLERANCE,
        description="No text spends more than its plan grants (relative to it, where it is above "
        "1; what "
        "is not planned is 0)",
        meta={"fault": "{subject} spend more than their plan grants"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_difference",
        max_value=TOLERANCE,
        description="The spent epsilon of a document is the sum over its token log",
        meta={"fault": "{subject} say another epsilon_spent than their token log"},
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
