"""What must hold of a budget plan: one row per text, from sql/checks/plan_totals.sql."""

from __future__ import annotations

import great_expectations as gx
from great_expectations.expectations.expectation import Expectation

from lexveil.checks.rules import TOLERANCE, at_least_one_row, between, each_once, none_of, suite_of

# S2 grants each collocation what one word would get, so it may leave some of the budget; the others spend all of it.
SPENDING_ALL = frozenset(["S1", "S3", "S4"])


def plan_suite(strategy: str, *, at_level: bool = False) -> gx.ExpectationSuite:
    """No text spends more than it was granted, and none is perturbed without noise or noised without being perturbed.

    Args:
        strategy: S1 to S4; all but S2 have to spend the whole budget,
        at_level: but not in a plan of a level of recovery, whose budget is what the longest text spends.
    """
    planned = "plan_budgets"
    rebuild = (
        f"No noise was drawn with it. `dvc repro --force {planned}` plans again; "
        "if this stays, it is a fault of tasks/plan_budgets.py"
    )
    rules: list[Expectation] = [
        at_least_one_row(
            "There is at least one text",
            "the plan has no text, at least 1 is needed",
            "`lexveil data use --documents PATH` brings documents, `lexveil data default` the embedded ones",
        ),
        each_once(
            ["dataset", "doc_id", "field"],
            "Every text is planned once",
            "{unexpected:,} of {checked:,} texts are planned more than once: their doc_id occurs again in its data set",
            "`lexveil data use --documents PATH` checks that, and makes ids where a file has none",
        ),
        between(
            "n_perturbed",
            "No text has a negative number of tokens to perturb",
            "{unexpected:,} of {checked:,} texts have a negative number of tokens to perturb "
            "({column} {worst:.0f}, limit {limit:.0f})",
            rebuild,
            low=0,
        ),
        none_of(
            "n_perturbed_beyond",
            "No more tokens are to be perturbed than there are",
            "{unexpected:,} of {checked:,} texts are to have more tokens perturbed than they have "
            "(by up to {worst:.0f}, limit {limit:.0f})",
            rebuild,
        ),
        between(
            "epsilon_per_token",
            "No epsilon is negative",
            "{unexpected:,} of {checked:,} texts have a negative epsilon ({column} {worst:g}, limit {limit:g})",
            rebuild,
            low=0,
        ),
        none_of(
            "is_mismatched",
            "Epsilon is greater than 0, and finite, exactly where tokens are perturbed",
            "{unexpected:,} of {checked:,} texts have tokens to perturb without a finite epsilon, or an epsilon "
            "without such tokens",
            rebuild,
        ),
        none_of(
            "is_odd_budget",
            "The budget is not negative, and the same for all texts of a data set",
            "{unexpected:,} of {checked:,} texts have a budget that is negative, not finite, or not the same in the "
            "whole data set",
            rebuild,
        ),
        between(
            "epsilon_overrun",
            "No text spends more than its budget (relative to it, where it is above 1)",
            "{unexpected:,} of {checked:,} texts spend more than their budget "
            "({column} up to {worst:.3g}, limit {limit:g})",
            rebuild,
            high=TOLERANCE,
        ),
    ]
    if strategy in SPENDING_ALL and not at_level:
        rules.append(
            between(
                "epsilon_unspent",
                f"Every text with tokens to perturb spends all of its budget, as {strategy} promises",
                "{unexpected:,} of {checked:,} texts leave some of their budget, "
                f"which {strategy} does not ({{column}} up to {{worst:.3g}}, limit {{limit:g}})",
                rebuild,
                high=TOLERANCE,
            )
        )
    return suite_of("plans", "texts", rules, rebuild)
