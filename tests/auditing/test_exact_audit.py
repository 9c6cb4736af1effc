"""The audit of closed forms: it says yes to what is private and no to what is not. Nothing is
sampled here."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import poisson

from lexveil.auditing.exact import (
    INPUTS_AT_A_TIME,
    RELATIVE,
    bounds_audit,
    exact_audit,
    gumbel_bounds,
)

EPSILONS = [0.1, 1.0, 10.0]


def line(*gaps):
    """Distances of words on a line with these gaps."""
    places = np.cumsum([0.0, *gaps])
    return np.abs(places[:, None] - places[None])


def cloud(n):
    places = np.random.default_rng(1).standard_normal((n, 3))
    return np.asarray(cdist(places, places))


def exact(distances, law, epsilon):
    """The audit of a table ln Pr[M(w) = y], (V, V)."""
    return exact_audit(
        lambda rows: law[rows], np.arange(len(distances)), between(distances), epsilon
    )


def between(distances):
    return lambda first, second: distances[np.ix_(first, second)]


def geometric(n, epsilon):
    """Two-sided geometric noise on the positions of a list, clipped to it."""
    at = np.arange(n)
    law = np.log(np.tanh(epsilon / 2)) - epsilon * np.abs(at[:, None] - at[None])
    tail = -np.log1p(np.exp(-epsilon))  # ln of Σ_{x >= k} = e^{-εk}/(1 + e^{-ε})
    law[:, 0] = tail - epsilon * at
    law[:, -1] = tail - epsilon * (n - 1 - at)
    return law


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("factor", [1, 2])
def test_geometric_noise_on_a_list_spends_exactly_epsilon_and_half_of_it_twice_that(
    factor, epsilon
):
    result = exact(line(*[1.0] * 29), geometric(30, factor * epsilon), epsilon)
    assert result.violation == (factor == 2)
    assert result.audited == pytest.approx(factor * epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("missed", [False, True])
def test_tem_keeps_its_claim_and_a_missed_neighbour_is_caught(missed, epsilon):
    """An approximate index misses the nearest neighbour of every third word; what it misses is
    scored -γ."""
    distances = cloud(30)
    score = np.minimum(distances, 2 / epsilon * np.log(0.999 * 29 / 0.001))
    if missed:
        near = np.argsort(distances, axis=1)[::3, 1]
        score[np.arange(0, 30, 3), near] = score[::3].max(axis=1)
    law = -epsilon / 2 * score
    result = exact(distances, law - np.logaddexp.reduce(law, axis=1, keepdims=True), epsilon)
    assert result.violation == missed and result.n_pairs == 30 * 29 // 2
    assert result.audited > 1.5 * epsilon if missed else result.audited <= epsilon


def test_truncated_gumbel_is_caught_whatever_its_noise():
    """The last word is the last neighbour of word 0 and hardly farther than all others. It comes
    out of word 0

    only if k = n, and Pr[k = n] falls faster than e^(-n); out of itself it comes often. No noise
    scale mends that, so the bound of the paper is false wherever ranks can change faster than ε·d
    allows, as in many dimensions they do.
    """
    n = 40
    ids = np.arange(40)
    places = np.vstack([np.zeros(n - 1), np.eye(n - 1)])
    places[-1] *= 1.01
    # the paper's calibration exists here: Δmin = 1
    epsilon = float(2 * (1 + np.log(n)) + 3 * np.e * 1.01)
    far = between(np.asarray(cdist(places, places)))
    stays, reached = gumbel_bounds(n, ids, far)
    weights = poisson.pmf(np.arange(1, n + 1), np.log(n))
    assert (stays[0], reached[0, -1]) == pytest.approx(np.log(weights[[0, -1]] / weights.sum()))
    assert bounds_audit(stays, reached, ids, far, epsilon).violation
    few = between(cloud(12))
    ids = np.arange(12)
    assert not bounds_audit(*gumbel_bounds(12, ids, few), ids, few, 60.0).violation


def test_words_at_one_place_must_have_one_distribution():
    for chance, violation in ((0.3, False), (0.2999, True)):
        channel = np.log(np.array([[0.5, 0.3, 0.2], [0.5, chance, 0.5 - chance], [0.3, 0.3, 0.4]]))
        result = exact(line(0.0, 1.0), channel, 5.0)
        assert result.violation == violation
    assert result.audited == np.inf and result.pair == (0, 1)


def test_an_output_that_only_one_word_can_give():
    with np.errstate(divide="ignore"):
        law = np.log(np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]))
    result = exact(line(1.0, 1.0), law, 100.0)
    assert result.violation and result.audited == np.inf
    with np.errstate(divide="ignore"):
        never = np.log(np.array([[0.0, 0.4, 0.6], [0.0, 0.6, 0.4], [0.0, 0.5, 0.5]]))
    assert not exact(line(1.0, 1.0), never, 1.0).violation  # impossible for all: nothing is learnt


@pytest.mark.parametrize(("error", "flagged"), [(0.0, False), (RELATIVE / 2, False), (1e-7, True)])
def test_the_tolerance_is_what_it_says(error, flagged):
    """A law that spends exactly ε (1 + error) between two words at distance 1."""
    loss = 3.0 * (1 + error)
    low = 1 / (1 + np.exp(loss))
    law = np.log(np.array([[1 - low, low], [low, 1 - low]]))
    assert exact(line(1.0), law, 3.0).violation == flagged


@pytest.mark.parametrize("n", [1, INPUTS_AT_A_TIME, 2 * INPUTS_AT_A_TIME + 5])
def test_blocks_see_every_pair(n):
    """The only bad pair is the first and the last word."""
    distances = np.ones((n, n)) - np.eye(n)
    chance = np.full((n, 2), 0.5)
    chance[0] = (0.7, 0.3)
    chance[-1] = (0.3, 0.7)
    result = exact(distances, np.log(chance), np.log(2.0))
    assert result.n_pairs == n * (n - 1) // 2
    assert result.violation == (n > 1)
    assert result.pair == ((0, n - 1) if n > 1 else None)


def test_what_is_no_distribution_is_refused():
    with pytest.raises(ValueError, match=r"sum to 0\.9"):
        exact(line(1.0), np.log(np.array([[0.5, 0.4], [0.5, 0.5]])), 1.0)
    with pytest.raises(ValueError, match="sum to nan"):
        exact(line(1.0), np.array([[np.nan, 0.0], [-1.0, -1.0]]), 1.0)
