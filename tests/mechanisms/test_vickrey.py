"""Vickrey: MADLIB at t = 0, the second word at t = 1, its formula between, and the broken variant."""

import numpy as np
import pytest

from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.vickrey import Vickrey
from tests.mechanisms.toys import SAMPLES, draw, fits, vectors

IDS, BUDGETS = np.arange(60) % 12, np.geomspace(0.1, 50, 60)


def test_t_0_is_madlib_and_t_1_the_second() -> None:
    madlib = Madlib(vectors())
    noise = Vickrey(vectors(), t=0.5).noise(BUDGETS, stream(1, "x"))
    assert (noise[:, :-1] == madlib.noise(BUDGETS, stream(1, "x"))).all()
    first = madlib.replace(IDS, BUDGETS, noise[:, :-1])
    assert (Vickrey(vectors(), t=0.0).replace(IDS, BUDGETS, noise) == first).all()
    two = madlib.search.nearest_k(madlib.vectors[IDS] + noise[:, :-1], 2)[0]
    assert (two[:, 0] == first).all()
    assert (Vickrey(vectors(), t=1.0).replace(IDS, BUDGETS, noise) == two[:, 1]).all()


@pytest.mark.parametrize(("wrong", "follows"), [(1.0, True), (1.1, False)])
def test_choice_of_many(wrong: float, follows: bool) -> None:
    t, gaps = np.array([0.5, 1.0, 1.5, 2.0]), np.array([0.3, 0.5, 0.6, 0.9])
    uniform = stream(1, "many").random(SAMPLES)
    near = np.tile(np.arange(4), (SAMPLES, 1))
    chosen = Vickrey(vectors(), t=t.tolist(), k=4).choose(near[:, 0], near, np.tile(gaps, (SAMPLES, 1)), uniform)
    assert fits(chosen, np.exp(-wrong * t * gaps * (1 if follows else 1.5))) == follows


def test_excluding_the_input_never_returns_it() -> None:
    """And so voids the guarantee; without the exclusion the word does come out."""
    for exclude in (True, False):
        vickrey = Vickrey(vectors(), t=0.5, exclude_input=exclude)
        assert (draw(vickrey, 3, 20.0, samples=2000) == 3).any() != exclude
        assert (vickrey.no_guarantee is None) != exclude
