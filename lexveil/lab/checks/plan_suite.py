"""Expectations for a budget plan: one row per text, from sql/checks/plan_totals.sql."""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.core.accounting.budgets import BY_WORDS
from lexveil.release.checks.suites import TOLERANCE, suite_of

REBUILD = (
    "No noise was drawn with it. `dvc repro --force plan_budgets` plans again; if this "
    "stays, it is a fault of "
    "tasks/plan_budgets.py"
)
RULES = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one text",
        meta={
            "fault": "there is no text, at least 1 is needed",
            "way_out": "`lexveil data use --documents PATH` brings documents, `lexveil data "
            "default` the embedded ones",
        },
    ),
    gxe.ExpectCompoundColumnsToBeUnique(
        column_list=["dataset", "doc_id", "field"],
        description="No two rows have the same dataset, doc_id, field",
        meta={
            "fault": "{subject} are there more than once (dataset, doc_id, field)",
            "way_out": "`lexveil data use --documents PATH` checks that, and makes ids where a "
            "file "
            "has none",
        },
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_perturbed",
        min_value=0,
        description="No number of tokens to perturb is negative",
        meta={"fault": "{subject} have a negative number to perturb"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_perturbed_beyond",
        min_value=0,
        max_value=0,
        description="No more tokens are to be perturbed than there are",
        meta={"fault": "{subject} are to have more tokens perturbed than they have"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="is_short_divisor",
        min_value=0,
        max_value=0,
        description="No budget is divided by less than the tokens to be perturbed",
        meta={"fault": "{subject} divide their budget by less than the tokens to be perturbed"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_per_token",
        min_value=0,
        description="No epsilon is negative",
        meta={"fault": "{subject} have a negative epsilon"},
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="is_mismatched",
        min_value=0,
        max_value=0,
        description="Epsilon is greater than 0, and finite, exactly where tokens are perturbed",
        meta={
            "fault": "{subject} have tokens to perturb without a finite epsilon, or an epsilon "
            "without such tokens"
        },
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="is_odd_budget",
        min_value=0,
        max_value=0,
        description="The budget is not negative, and the same for all texts of a data set",
        meta={
            "fault": "{subject} have a budget that is negative, not finite, or not the same in "
            "the whole data set"
        },
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_overrun",
        max_value=TOLERANCE,
        description="No text spends more than its budget (relative to it, where it is above 1)",
        meta={"fault": "{subject} spend more than their budget"},
    ),
)


BY_ALL_WORDS = gxe.ExpectColumnValuesToBeBetween(
    column="is_without_words",
    min_value=0,
    max_value=0,
    description="Every budget is divided by all words of its text",
    meta={"fault": "{subject} divide their budget by less than their words"},
)
OF_ONE_EPSILON = gxe.ExpectColumnValuesToBeBetween(
    column="is_uneven",
    min_value=0,
    max_value=0,
    description="All tokens that are perturbed have the same epsilon in all texts of a data set",
    meta={"fault": "{subject} have another epsilon of a token than other texts of their data set"},
)


def plan_suite(strategy: str, *, is_per_token: bool = False) -> gx.ExpectationSuite:
    """Suite for a budget plan: no text spends more than its budget, and tokens have an epsilon
    exactly if they are perturbed.

    Args:
        strategy: S1 to S4. All strategies divide the whole budget; S1 and S2 divide it by all
            words.
        is_per_token: whether every token of the plan has the same epsilon. The budget is then the
            spending of the longest text, and no rule about the division applies.
    """
    undivided = gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_undivided",
        max_value=TOLERANCE,
        description="Every text with tokens to perturb divides all of its budget",
        meta={"fault": "{subject} do not divide all of their budget"},
    )
    if is_per_token:
        return suite_of("plans", "texts", (*RULES, OF_ONE_EPSILON), REBUILD)
    own = (BY_ALL_WORDS, undivided) if strategy in BY_WORDS else (undivided,)
    return suite_of("plans", "texts", (*RULES, *own), REBUILD)
