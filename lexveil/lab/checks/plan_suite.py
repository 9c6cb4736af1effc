"""Expectations for a budget plan: one row per text, from sql/checks/plan_totals.sql."""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.core.accounting.budgets import BY_WORDS
from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

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
    zero(
        "n_perturbed_beyond",
        holds="No more tokens are to be perturbed than there are",
        fault="{subject} are to have more tokens perturbed than they have",
    ),
    zero(
        "is_short_divisor",
        holds="No budget is divided by less than the tokens to be perturbed",
        fault="{subject} divide their budget by less than the tokens to be perturbed",
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_per_token",
        min_value=0,
        description="No epsilon is negative",
        meta={"fault": "{subject} have a negative epsilon"},
    ),
    zero(
        "is_mismatched",
        holds="Epsilon is greater than 0, and finite, exactly where tokens are perturbed",
        fault=(
            "{subject} have tokens to perturb without a finite epsilon, or an epsilon "
            "without such tokens"
        ),
    ),
    zero(
        "is_odd_budget",
        holds="The budget is not negative, and the same for all texts of a data set",
        fault=(
            "{subject} have a budget that is negative, not finite, or not the same in "
            "the whole data set"
        ),
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_overrun",
        max_value=TOLERANCE,
        description="No text spends more than its budget (relative to it, where it is above 1)",
        meta={"fault": "{subject} spend more than their budget"},
    ),
)


BY_ALL_WORDS = zero(
    "is_without_words",
    holds="Every budget is divided by all words of its text",
    fault="{subject} divide their budget by less than their words",
)
OF_ONE_EPSILON = zero(
    "is_uneven",
    holds="All tokens that are perturbed have the same epsilon in all texts of a data set",
    fault="{subject} have another epsilon of a token than other texts of their data set",
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
