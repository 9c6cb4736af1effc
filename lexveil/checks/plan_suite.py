"""Expectations for a budget plan: one row per text, from sql/checks/plan_totals.sql."""

from __future__ import annotations

import great_expectations as gx

from lexveil.accounting.budgets import BY_WORDS
from lexveil.checks.rules import TOLERANCE, at_least_one, between, each_once, none_of, suite_of

REBUILD = (
    "No noise was drawn with it. `dvc repro --force plan_budgets` plans again; if this "
    "stays, it is a fault of "
    "tasks/plan_budgets.py"
)
RULES = (
    at_least_one(
        "text",
        way_out="`lexveil data use --documents PATH` brings documents, `lexveil data "
        "default` the embedded ones",
    ),
    each_once(
        "dataset",
        "doc_id",
        "field",
        way_out="`lexveil data use --documents PATH` checks that, and makes ids where a file "
        "has none",
    ),
    between(
        "n_perturbed",
        "No number of tokens to perturb is negative",
        "have a negative number to perturb",
        low=0,
    ),
    none_of(
        "n_perturbed_beyond",
        "No more tokens are to be perturbed than there are",
        "are to have more tokens perturbed than they have",
    ),
    none_of(
        "is_short_divisor",
        "No budget is divided by less than the tokens to be perturbed",
        "divide their budget by less than the tokens to be perturbed",
    ),
    between("epsilon_per_token", "No epsilon is negative", "have a negative epsilon", low=0),
    none_of(
        "is_mismatched",
        "Epsilon is greater than 0, and finite, exactly where tokens are perturbed",
        "have tokens to perturb without a finite epsilon, or an epsilon without such tokens",
    ),
    none_of(
        "is_odd_budget",
        "The budget is not negative, and the same for all texts of a data set",
        "have a budget that is negative, not finite, or not the same in the whole data set",
    ),
    between(
        "epsilon_overrun",
        "No text spends more than its budget (relative to it, where it is above 1)",
        "spend more than their budget",
        high=TOLERANCE,
    ),
)


BY_ALL_WORDS = none_of(
    "is_without_words",
    "Every budget is divided by all words of its text",
    "divide their budget by less than their words",
)
OF_ONE_EPSILON = none_of(
    "is_uneven",
    "All tokens that are perturbed have the same epsilon in all texts of a data set",
    "have another epsilon of a token than other texts of their data set",
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
    undivided = between(
        "epsilon_undivided",
        "Every text with tokens to perturb divides all of its budget",
        "do not divide all of their budget",
        high=TOLERANCE,
    )
    if is_per_token:
        return suite_of("plans", "texts", (*RULES, OF_ONE_EPSILON), REBUILD)
    own = (BY_ALL_WORDS, undivided) if strategy in BY_WORDS else (undivided,)
    return suite_of("plans", "texts", (*RULES, *own), REBUILD)
