"""Inference error and utility loss by hand, and exact against drawn."""

import numpy as np
import pytest

from lexveil.core.mechanisms.deniability import draw_replacements
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.tem import Tem
from lexveil.lab.evaluation.inference_error import measure, of_draws
from tests.mechanisms.toys import Known, Loaded

LABELS = np.array([0, 0, 1])
PRIOR = np.array([0.5, 0.3, 0.2])
RNG = np.random.default_rng(0)


CHANNEL = [[0.6, 0.4, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]


def test_exact_by_hand():
    """Joint π·Pr: output 0 from words 0, 1 with 0.3, 0.15; output 1 from word 0 with 0.2; output 2
    from 1, 2 with 0.15, 0.2. The guess is right with (0.3² + 0.15²)/0.45 + 0.2²/0.2 + (0.15² +
    0.2²)/0.35. Of the labels, word 1 as 2 is wrong alone. A mechanism that says everything, and one
    that says nothing, over 4 equal words of two labels.
    """
    found = measure(Known(CHANNEL), 1.0, LABELS, PRIOR, RNG)
    assert found == pytest.approx((1 - (0.1125 / 0.45 + 0.2 + 0.0625 / 0.35), 0.15))
    for channel, expected in ((np.eye(4), (0, 0)), (np.full((4, 4), 1 / 4), (3 / 4, 1 / 2))):
        assert measure(
            Known(channel), 1.0, np.array([0, 1, 0, 1]), np.full(4, 1 / 4), RNG
        ) == pytest.approx(expected)


def test_drawn_by_hand():
    """Two draws of two equal words: word 0 gives 0, 1; word 1 gives 1, 1.

    Output 0 of word 0 has no other draw: guessed, 1/4. Its output 1 is like two draws of word 1 and
    none of its own: never. Those of word 1 are like one other of word 1 and one of two of word 0:
    1/2 to 1/4, so 2/3 of 1/2.
    """
    got = of_draws(np.array([[0, 1], [1, 1]]), np.array([0, 1]), np.full(2, 0.5))
    assert got == pytest.approx((1 - 1 / 4 - 1 / 3, 1 / 4))


@pytest.mark.parametrize(("scale", "agrees"), [(1.0, True), (1.5, False)])
def test_drawn_agrees_with_exact(scale, agrees):
    """60 words, 20 runs of 100 draws, within 6 standard errors and 0.005 of bias; drawn at another
    ε they are not."""
    rng = np.random.default_rng(2)
    mechanism = Tem(rng.standard_normal((60, 4)).astype(np.float32))
    labels = rng.integers(0, 2, 60)
    prior = rng.dirichlet(np.ones(60))
    drawn = lambda run: draw_replacements(  # noqa: E731
        mechanism, np.arange(60), 6.0 * scale, 100, stream(run, "drawn")
    )
    runs = np.array([of_draws(drawn(run), labels, prior) for run in range(20)])
    exact = measure(mechanism, 6.0, labels, prior, rng)
    off = np.abs(runs.mean(axis=0) - exact)
    assert (off < 6 * runs.std(axis=0, ddof=1) / np.sqrt(20) + 0.005).all() == agrees
    assert 0.1 < exact.inference_error < 0.95


def test_few_draws_flatter_neither_the_adversary_nor_the_mechanism():
    """If each of 400 words becomes any other word, the adversary guesses 1 in 400; one who saw the
    draw would guess 1 in 10. An output that only one word can have reveals the word, even if the
    output occurred once.
    """
    n = 400
    blind = measure(Loaded(np.full((n, n), 1 / n)), 1.0, np.zeros(n), np.full(n, 1 / n), RNG, 10)
    assert 1 - blind.inference_error < 2 / n
    channel = np.zeros((20, 20))
    channel[0, :10] = 1 / 10
    channel[1, 10:] = 1 / 10
    channel[2:, 19] = 1
    prior = np.array([0.5, 0.5] + [0.0] * 18)
    assert measure(Loaded(channel), 1.0, np.zeros(20), prior, RNG, 4)[0] == pytest.approx(
        0, abs=1e-12
    )
