"""Algorithm 2 of Vickrey, on trade-offs that are known."""

import numpy as np
import pytest

from examples.replication.tradeoff import (
    TunedVickrey,
    WordList,
    measured_at,
    mechanisms_of_figure_3,
    tune,
)
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.registry import Space, build_mechanism
from lexveil.lab.evaluation.inference_error import Tradeoff


def known(epsilon, t):
    """A loss of 1/ε that grows with t, and an error that is largest at t = 0.6."""
    return Tradeoff(1 - abs(t - 0.6), 1 / epsilon + 0.1 * t)


def test_epsilon_is_doubled_until_the_loss_is_small_then_the_best_t_is_taken():
    """Loss 1/ε < 0.2 first at ε 8 (0.125). There t may be 0.75 at most, and 0.6 has the largest
    error."""
    chosen = tune(known, 0.2, steps=[0.2, 0.4, 0.6, 0.8, 1.0])
    assert chosen == TunedVickrey(0.2, 8.0, 0.6, 1.0, 1 / 8 + 0.06)


def test_a_t_that_costs_too_much_is_not_taken():
    """Loss below 0.13 first at ε 8; 0.125 + 0.1·t stays there to t 0.05 alone."""
    chosen = tune(known, 0.13, steps=[0.05, 0.6])
    assert (chosen.epsilon, chosen.t) == (8.0, 0.05)


def test_where_no_epsilon_keeps_the_loss_nothing_is_chosen():
    chosen = tune(lambda epsilon, t: Tradeoff(0.5, 0.5), 0.2, max_epsilon=100.0)
    assert chosen == TunedVickrey(0.2, None, None, None, None)


def test_without_a_larger_error_t_stays_zero():
    chosen = tune(lambda epsilon, t: Tradeoff(0.5 - t / 10, 0.1), 0.2, steps=[0.5, 1.0])
    assert (chosen.epsilon, chosen.t, chosen.inference_error) == (1.0, 0.0, 0.5)


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5])
def test_the_lines_of_figure_3_take_one_neighbour_alone(place):
    """Words on a line at 0, 1, 3, 6, 10, 15; with hardly any noise the word itself is the first,
    and those of word 0 come in order."""
    vectors = np.array([[0.0], [1.0], [3.0], [6.0], [10.0], [15.0]], dtype=np.float32)
    name, parameters = mechanisms_of_figure_3()[f"nearest {place}"]
    mechanism = build_mechanism(name, Space(vectors), {name: parameters})
    budgets = np.full(4, 1e6)
    noise = mechanism.noise(budgets, stream(1, "test"))
    assert (
        mechanism.replace(np.zeros(4, dtype=np.int64), budgets, noise).tolist() == [place - 1] * 4
    )


def test_the_second_neighbour_hides_what_the_first_gives_away():
    """Two pairs of near words: MADLIB mostly gives each word back and t = 1 its partner, which
    gives it away as well; t = 0.5 says neither.
    """
    vectors = np.array([[0.0], [1.0], [100.0], [101.0]], dtype=np.float32)
    words = WordList(vectors, np.array([0, 0, 1, 1]), np.full(4, 0.25))
    first, between, second = (
        measured_at(words, "vickrey", {"t": t, "k": 2}, 3.0, 200) for t in (0.0, 0.5, 1.0)
    )
    assert between.inference_error > max(first.inference_error, second.inference_error) + 0.05
    assert (first.utility_loss, between.utility_loss, second.utility_loss) == (0, 0, 0)
