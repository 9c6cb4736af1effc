"""What is compared with does the same as what is compared."""

import numpy as np
import pytest

from benchmarks import per_word
from lexveil.mechanisms.registry import build_mechanism
from tests.mechanisms.toys import fits, vectors

pytestmark = pytest.mark.slow

DRAWS = 4_000  # of the per-word form; a law that is drawn too is known from 25 times as many


def drawn_per_word(replace: per_word.PerWord, word: int, epsilon: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.array([replace(word, epsilon, rng) for _ in range(DRAWS)])


@pytest.mark.parametrize(("name", "epsilon"), [("tem", 3.0), ("diffractor_geometric", 0.7), ("diffractor_tem", 0.7)])
@pytest.mark.parametrize(("error", "follows"), [(1.0, True), (0.7, False)])
def test_the_per_word_form_follows_the_closed_form(name: str, epsilon: float, error: float, follows: bool) -> None:
    some, order = vectors(), np.random.default_rng(1).permutation(12).astype(np.int32)
    mechanism = build_mechanism(name, some, orders=order[None])
    law = np.exp(mechanism.log_pmf(np.array([3]), np.array([epsilon * error])))[0]
    plain = per_word.build(name, order if name.startswith("diffractor") else some)
    assert fits(drawn_per_word(plain, 3, epsilon), law) == follows
