"""The audit of closed forms: it says yes to what is private and no to what is not. Nothing is sampled here."""

from __future__ import annotations


import numpy as np
import pytest
from audit_toys import (
    between,
    cloud,
    exact,
    geometric,
    line,
    poisson_sizes,
    star,
    tem_ball_missing,
    truncated_gumbel,
)

from lexveil.auditing.exact import BLOCK, RELATIVE, bounds_audit, gumbel_bounds

EPSILONS = [0.1, 1.0, 10.0]
SPREAD = cloud(30, 3, 1)


def gumbel_epsilon(distances: np.ndarray) -> float:
    """Just above the smallest ε for which the paper's calibration exists."""
    n = len(distances)
    smallest = distances[~np.eye(n, dtype=bool)].min()
    return float((2 * (1 + np.log(n)) + 3 * np.e * 1.01) / smallest)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("factor", [1, 2])
def test_geometric_noise_on_a_list_spends_exactly_epsilon_and_half_of_it_twice_that(
    factor: int, epsilon: float
) -> None:
    result = exact(line(*[1.0] * 29), lambda distances, claimed: geometric(distances, factor * claimed), epsilon)
    assert result.violation == (factor == 2)
    assert result.audited == pytest.approx(factor * epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_missed_neighbour_is_caught(epsilon: float) -> None:
    result = exact(SPREAD, tem_ball_missing, epsilon)
    assert result.violation
    assert result.audited > 1.5 * epsilon


def test_truncated_gumbel_is_caught_even_with_the_calibration_of_its_paper() -> None:
    """Word 2 is the last neighbour of word 0 and the second of word 1, and these are Δmin apart. It comes out of word 0

    only if k = n, and Pr[k = n] falls faster than e^(-n); out of word 1 it comes often. No noise scale mends that, so
    the bound of the paper is false wherever ranks can change faster than ε·d allows, as in many dimensions they do.
    """
    n = 20
    distances = star(n)
    epsilon = gumbel_epsilon(distances)
    result = exact(distances, truncated_gumbel, epsilon)
    assert result.violation
    assert (result.pair, result.output) == ((0, 1), 2)
    # Without any quadrature: Pr[2|0] <= Pr[k = n], and Pr[2|1] is what is left of it by the loss.
    law = truncated_gumbel(distances, epsilon)
    assert law[0, 2] <= poisson_sizes(n)[-1]
    assert law[1, 2] > np.log(0.05)
    assert np.log(0.05) - poisson_sizes(n)[-1] > epsilon * distances[0, 1]


def test_bounds_are_bounds() -> None:
    """On a cloud of which the law can be computed: the bounds hold, and flag nothing that the law does not."""
    distances, ids = cloud(12, 3, 0), np.arange(12)
    epsilon = gumbel_epsilon(distances)
    assert not exact(distances, truncated_gumbel, epsilon).violation
    law = truncated_gumbel(distances, epsilon)
    stays, reached = gumbel_bounds(12, ids, between(distances))
    assert (stays <= np.diag(law) + 1e-6).all()
    assert (reached >= law - 1e-6).all()
    assert not bounds_audit(stays, reached, ids, between(distances), epsilon).violation


def test_words_at_one_place_must_have_one_distribution() -> None:
    for chance, violation in ((0.3, False), (0.2999, True)):
        channel = np.log(np.array([[0.5, 0.3, 0.2], [0.5, chance, 0.5 - chance], [0.3, 0.3, 0.4]]))
        result = exact(line(0.0, 1.0), lambda *_, table=channel: table, 5.0)
        assert result.violation == violation
    assert result.audited == np.inf and result.pair == (0, 1)


def test_an_output_that_only_one_word_can_give() -> None:
    with np.errstate(divide="ignore"):
        law = np.log(np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]))
    result = exact(line(1.0, 1.0), lambda *_: law, 100.0)
    assert result.violation and result.audited == np.inf
    with np.errstate(divide="ignore"):
        never = np.log(np.array([[0.0, 0.4, 0.6], [0.0, 0.6, 0.4], [0.0, 0.5, 0.5]]))
    assert not exact(line(1.0, 1.0), lambda *_: never, 1.0).violation  # impossible for all: nothing is learnt


@pytest.mark.parametrize(("error", "flagged"), [(0.0, False), (RELATIVE / 2, False), (1e-7, True)])
def test_the_tolerance_is_what_it_says(error: float, flagged: bool) -> None:
    """A law that spends exactly ε (1 + error) between two words at distance 1."""
    loss = 3.0 * (1 + error)
    low = 1 / (1 + np.exp(loss))
    law = np.log(np.array([[1 - low, low], [low, 1 - low]]))
    assert exact(line(1.0), lambda *_: law, 3.0).violation == flagged


@pytest.mark.parametrize("n", [1, BLOCK, 2 * BLOCK + 5])
def test_blocks_see_every_pair(n: int) -> None:
    """The only bad pair is the first and the last word."""
    distances = np.ones((n, n)) - np.eye(n)
    chance = np.full((n, 2), 0.5)
    chance[0], chance[-1] = (0.7, 0.3), (0.3, 0.7)
    result = exact(distances, lambda *_: np.log(chance), np.log(2.0))
    assert result.n_pairs == n * (n - 1) // 2
    assert result.violation == (n > 1)
    assert result.pair == ((0, n - 1) if n > 1 else None)


def test_what_is_no_distribution_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sum to 0\.9"):
        exact(line(1.0), lambda *_: np.log(np.array([[0.5, 0.4], [0.5, 0.5]])), 1.0)
    with pytest.raises(ValueError, match="sum to nan"):
        exact(line(1.0), lambda *_: np.array([[np.nan, 0.0], [-1.0, -1.0]]), 1.0)
