"""What must hold of a budget plan: one row per text, from sql/checks/plan_totals.sql."""

from __future__ import annotations

import great_expectations as gx

from lexveil.checks.rules import TOLERANCE, at_least_one, between, each_once, none_of, suite_of

# S2 grants each collocation what one word would get, so it may leave some of the budget; the others
# spend all of it.
SPENDING_ALL = frozenset(["S1", "S3", "S4"])
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


def plan_suite(strategy: str, *, at_level: bool = False) -> gx.ExpectationSuite:
    """No text spends more than it was granted, and none is perturbed without noise or noised
    without being perturbed.

    Args:
        strategy: S1 to S4; all but S2 have to spend the whole budget,
        at_level: but not in a plan of a level of recovery, whose budget is what the longest text
            spends.
    """
    unspent = between(
        "epsilon_unspent",
        f"Every text with tokens to perturb spends all of its budget, as {strategy} promises",
        f"leave some of their budget, which {strategy} does not",
        high=TOLERANCE,
    )
    spends_all = strategy in SPENDING_ALL and not at_level
    return suite_of("plans", "texts", (*RULES, unspent) if spends_all else RULES, REBUILD)
