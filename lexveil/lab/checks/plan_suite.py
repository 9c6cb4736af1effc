"""Great Expectations suite for a privacy budget plan, which states the epsilon of every text. The
checked data frame has one row per text and comes from sql/checks/plan_totals.sql.
"""

from __future__ import annotations

import great_expectations as gx
import great_expectations.expectations as gxe

from lexveil.core.accounting.budgets import BY_WORDS
from lexveil.release.checks.suites import TOLERANCE, suite_of, zero

REBUILD = (
    "No noise was drawn with this plan. `dvc repro --force plan_budgets` computes the plan "
    "again; if the fault remains, it is a bug in tasks/plan_budgets.py"
)
RULES = (
    gxe.ExpectTableRowCountToBeBetween(
        min_value=1,
        description="There is at least one text",
        meta={
            "fault": "there is no text, at least 1 is needed",
            "way_out": (
                "Add documents with `lexveil data use --documents PATH`, or use the "
                "embedded documents with `lexveil data default`"
            ),
        },
    ),
    gxe.ExpectCompoundColumnsToBeUnique(
        column_list=["dataset", "doc_id", "field"],
        description="No two rows have the same dataset, doc_id, field",
        meta={
            "fault": "{subject} occur more than once (dataset, doc_id, field)",
            "way_out": (
                "`lexveil data use --documents PATH` checks the ids, and makes ids for a "
                "file without ids"
            ),
        },
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="n_perturbed",
        min_value=0,
        description="No number of tokens to perturb is negative",
        meta={"fault": "{subject} have a negative number of tokens to perturb"},
    ),
    zero(
        "n_perturbed_beyond",
        holds="No text has more tokens to perturb than tokens",
        fault="{subject} have more tokens to perturb than tokens",
    ),
    zero(
        "is_short_divisor",
        holds="The divisor of every budget is at least the number of tokens to perturb",
        fault="{subject} have a divisor of the budget below their number of tokens to perturb",
    ),
    gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_per_token",
        min_value=0,
        description="No epsilon is negative",
        meta={"fault": "{subject} have a negative epsilon"},
    ),
    zero(
        "is_mismatched",
        holds="Epsilon is positive and finite if a text has tokens to perturb, and 0 otherwise",
        fault=(
            "{subject} have tokens to perturb without a finite epsilon, or an epsilon without "
            "tokens to perturb"
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
        description="No text spends more than its budget",
        meta={"fault": "{subject} spend more than their budget"},
    ),
)


BY_ALL_WORDS = zero(
    "is_without_words",
    holds="The divisor of every budget is the number of words of the text",
    fault="{subject} have a divisor of the budget below their number of words",
)
OF_ONE_EPSILON = zero(
    "is_uneven",
    holds="The epsilon of a perturbed token is the same in all texts of a data set",
    fault="{subject} have an epsilon of a token that differs from other texts of the data set",
)


def plan_suite(strategy: str, *, is_per_token: bool = False) -> gx.ExpectationSuite:
    """Build the expectation suite for a privacy budget plan: no text spends more than its budget,
    and a text has an epsilon if and only if it has tokens to perturb.

    Args:
        strategy: name of the strategy, S1 to S4. All strategies divide the whole budget; S1 and S2
            divide it by the number of all words.
        is_per_token: whether every token of the plan has the same epsilon. The budget is then the
            spending of the longest text, and the rules about the division do not apply.
    """
    undivided = gxe.ExpectColumnValuesToBeBetween(
        column="epsilon_undivided",
        max_value=TOLERANCE,
        description="Every text with tokens to perturb divides its whole budget",
        meta={"fault": "{subject} do not divide their whole budget"},
    )
    if is_per_token:
        return suite_of("plans", "texts", (*RULES, OF_ONE_EPSILON), REBUILD)
    own = (BY_ALL_WORDS, undivided) if strategy in BY_WORDS else (undivided,)
    return suite_of("plans", "texts", (*RULES, *own), REBUILD)
