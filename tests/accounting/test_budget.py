"""Budgets by hand (CLMLDP Figure 1 and Table 8), and their invariants."""

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lexveil.accounting.budgets import Action, Policy, document_budget, epsilon_per_token
from lexveil.errors import ParameterError
from lexveil.privatization import settings
from tests.accounting.toy_measurements import toy_engine

PERTURBED, KEPT, DROPPED, SAMPLED, *_ = Action


@pytest.mark.parametrize(
    ("strategy", "n_tokens", "expected"), [("S1", 6, 1.67), ("S2", 4, 1.67), ("S3", 4, 2.5), ("S4", 4, 2.5)]
)
def test_figure_1(strategy: str, n_tokens: int, expected: float) -> None:
    """B = 10 over "I think, therefore I am": six words, four tokens."""
    spent = epsilon_per_token(strategy, 10.0, np.array([n_tokens]), np.array([6]))
    assert spent.round(2).tolist() == [expected]


STRATEGIES = st.sampled_from(["S1", "S2", "S3", "S4"])
BUDGETS = st.floats(1e-9, 1e9) | st.integers(1, 10**6).map(float)


@given(st.integers(1, 10**6) | st.integers(1, 40), st.integers(0, 10**6), BUDGETS, STRATEGIES)
@example(n=10**6, extra=0, budget=0.1, strategy="S3")
@example(n=3, extra=0, budget=0.3, strategy="S1")  # 0.3 / 3 rounds up
def test_the_epsilon_of_a_text_add_up_exactly_and_never_above_its_budget(
    n: int, extra: int, budget: float, strategy: str
) -> None:
    words = n + min(extra, 2 * n)
    (epsilon,) = epsilon_per_token(strategy, budget, np.array([n]), np.array([words])).tolist()
    exact = n * Fraction(epsilon)
    assert exact <= Fraction(budget)
    assert n * epsilon == exact and float(exact) == exact  # every partial sum has fewer bits still
    parts = words if strategy == "S2" else n
    assert epsilon == pytest.approx(budget / parts, rel=2**-30) and epsilon <= Fraction(budget) / parts


@given(st.integers(1, 10**6), BUDGETS, st.floats(1e-9, 1e9), STRATEGIES)
def test_no_token_gets_more_than_the_limit(n: int, budget: float, cap: float, strategy: str) -> None:
    (epsilon,) = epsilon_per_token(strategy, budget, np.array([n]), np.array([n]), cap).tolist()
    assert 0 < epsilon <= cap and n * Fraction(epsilon) <= Fraction(budget)
    assert epsilon == pytest.approx(min(cap, budget / n), rel=2**-30)


@pytest.mark.parametrize(
    ("given", "total", "cap"),
    [
        ({"base_epsilon": 2.0, "budget": None, "average_words": 20.0}, 40.0, 4.0),
        ({"budget": 30.0, "average_words": 20.0}, 30.0, 3.0),
        ({"budget": 30.0, "max_token_epsilon": 0.5}, 30.0, 0.5),
        ({"base_epsilon": 2.0, "budget": None, "average_words": 20.0, "max_token_epsilon": "none"}, 40.0, inf),
    ],
)
def test_the_limit_of_a_token_is_twice_the_base_epsilon(given: dict[str, Any], total: float, cap: float) -> None:
    engine = toy_engine("tem", "S1", **given)
    budget = settings.document_budget(engine.settings, engine.model)
    assert (budget.total, budget.cap) == (total, cap)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="finite and greater than 0"):
        document_budget(epsilon, np.array([1]))


def test_policy_decides_per_class() -> None:
    kind = np.array([0, 1, 2, 3, 1], dtype=np.int8)
    known = np.array([True, True, True, False, False])
    paper = Policy.of("S1", "paper", "keep", "sample")
    assert paper.actions(kind, known).tolist() == [PERTURBED, KEPT, KEPT, SAMPLED, KEPT]
    other = Policy.of("S3", "paper", "drop", "keep")
    assert other.actions(kind, known).tolist() == [PERTURBED, PERTURBED, DROPPED, KEPT, KEPT]
    # A stop word without a vector cannot be perturbed: it is treated as unknown.
    assert Policy.of("S3", "perturb", "perturb", "sample").actions(kind, known)[4] == SAMPLED
