"""Great Expectations suite for the rewritten documents of one run of the grid. The checked data
frame has one row per document and comes from sql/checks/output_lengths.sql.
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
        meta={"fault": "{subject} occur more than once (dataset, doc_id)"},
    ),
    zero(
        "is_lost",
        holds="Every document of the input is in the output",
        fault="{subject} of the input are not in the output",
    ),
    zero(
        "is_stray",
        holds="Every document of the output is in the input",
        fault="{subject} are not in the input",
    ),
    zero(
        "n_nulls",
        holds="Every document has an id and a text",
        fault="{subject} have no id or no text",
    ),
    zero(
        "n_miscarried",
        holds="Split, label and attribute equal the values in the input",
        fault="{subject} have a split, label or attribute that differs from the input",
    ),
    zero(
        "n_misplaced",
        holds="The token log numbers the tokens of a text from 0 without gaps",
        fault="{subject} have repeated or missing positions in their token log",
    ),
    zero(
        "n_words_beyond",
        holds="An output token is 1 to 3 words, so n tokens have n to 3 n words",
        fault=(
            "{subject} have fewer output words than output tokens, or more than 3 words per token"
        ),
    ),
    zero(
        "n_unclear",
        holds="Every token has a known class, a known action and a number of output words",
        fault=("{subject} have tokens with an unknown class, action or number of words"),
    ),
    zero(
        "tokens_in_gap",
        holds="The input has as many tokens as the token log",
        fault="{subject} have a number of input tokens that differs from the token log",
    ),
    zero(
        "tokens_out_gap",
        holds=(
            "The output has as many tokens as the input, less the tokens that were dropped "
            "according to the token log"
        ),
        fault=(
            "{subject} have a number of output tokens that differs from the number of input "
            "tokens less the dropped tokens"
        ),
    ),
    zero(
        "words_out_gap",
        holds="The output has as many words as the token log",
        fault="{subject} have a number of output words that differs from the token log",
    ),
    zero(
        "n_foreign",
        holds=(
            "Every output token is in the vocabulary, or the token log says that the token was kept"
        ),
        fault="{subject} have output tokens that are neither in the vocabulary nor kept tokens",
    ),
    zero(
        "unprotected_gap",
        holds="n_unprotected is the number of kept tokens",
        fault=(
            "{subject} have an n_unprotected that differs from the number of kept tokens "
            "in the token log"
        ),
    ),
    zero(
        "n_mispriced",
        holds=(
            "Epsilon is greater than 0 exactly for perturbed tokens; kept, dropped and sampled "
            "tokens have epsilon 0"
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
        description="No text spends more than its planned budget, which is 0 without a plan",
        meta={"fault": "{subject} spend more than their planned budget"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_difference",
        max_value=TOLERANCE,
        description="epsilon_spent of a document is the sum over the tokens in the token log",
        meta={
            "fault": "{subject} have an epsilon_spent that differs from the sum in their token log"
        },
    ),
)


def output_suite(stage: str, is_clean: bool) -> gx.ExpectationSuite:
    """Build the expectation suite for the rewritten documents of one run: no token is lost or
    added, and the token log states every epsilon that was spent.

    Args:
        stage: name of the DVC stage that writes the output.
        is_clean: whether the run is the clean baseline, whose texts must equal the input.
    """
    rebuild = (
        f"Do not pass this output on. `dvc repro --force {stage}` writes it again; if the fault "
        "remains, it is a bug in tasks/privatize.py"
    )
    return suite_of(
        "outputs", "documents", (*RULES, *([CLEAN] if is_clean else []), *SPENT), rebuild
    )
