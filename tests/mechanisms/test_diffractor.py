"""1-Diffractor: exact laws on integers, one list and several."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from lexveil.errors import ParameterError
from lexveil.mechanisms import diffractor_geometric as module
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric, geometric_size
from lexveil.mechanisms.diffractor_tem import DiffractorTem
from lexveil.mechanisms.kernels import diffractor as kernels
from lexveil.mechanisms.tem import truncation
from tests.mechanisms.toys import draw

KINDS = [DiffractorGeometric, DiffractorTem]


def test_float64_says_where_it_cannot_tell() -> None:
    """The fast path alone leaves the boundary open, and the slow one agrees with it away from boundaries."""
    words = np.random.default_rng(3).integers(0, 2**64 - 1, size=(300, 2), dtype=np.uint64)
    epsilon, index = np.geomspace(0.01, 20, 300), np.full(300, 500)
    moved, doubt = kernels.geometric(index, epsilon, words, 1000)
    assert not doubt.any()
    for token in range(300):
        assert abs(moved[token] - 500) == geometric_size(words[token], float(epsilon[token]), 1000)
    tem = DiffractorTem(np.arange(1000))
    fast = tem.perturb(index, epsilon, words)
    gamma = truncation(epsilon, tem.beta, 1000)
    for token in range(0, 300, 5):
        radius = int(min(gamma[token], 1000))
        slow = module.settle(lambda u, t=token, r=radius: tem._at(u, 500, float(epsilon[t]), r), words[token])
        assert slow == fast[token]


def test_deep_tails_are_drawn() -> None:
    """A first word of zero goes on with more bits: at ε = 60 a step of one has probability 2·10⁻²⁶."""
    words = np.array([[0, 12345]], dtype=np.uint64)
    assert geometric_size(words[0], 60.0, 100) >= 0
    assert geometric_size(words[0], 1.0, 100) >= 43  # e^{-43} is about 2^{-62}
    with localcontext() as context:
        context.prec = 60
        assert module._geometric_at(Decimal(10) ** -40, 30.0, 100) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_one_word_and_bad_lists(kind) -> None:
    assert draw(kind(np.zeros(1, dtype=np.int32)), 0, 1.0, samples=20).tolist() == [0] * 20
    with pytest.raises(ParameterError, match="exactly once"):
        kind(np.array([0, 1, 1]))
    with pytest.raises(ParameterError, match="at least one word"):
        kind(np.zeros((1, 0), dtype=np.int32))


def test_rounding_of_the_radius_never_makes_a_longer_step() -> None:
    """The score is the index up to R = ⌊reach⌋, and γ beyond: from R to R + 1 it may change by 1 at most.

    With R = ⌊γ⌋ it changes by more where γ is rounded below a whole number, which the first assertion looks for.
    """
    tem = DiffractorTem(np.arange(1000))
    beta, longer = Decimal(tem.beta), 0
    with localcontext() as context:
        context.prec = 60
        level = 2 * ((1 - beta) * 999 / beta).ln()
        for whole in range(1, 200):
            epsilon = np.array([float(level / whole)])
            for _ in range(4):
                gamma, radius = float(truncation(epsilon, tem.beta, 1000)[0]), int(tem.reach(epsilon)[0])
                longer += level / Decimal(float(epsilon[0])) - int(gamma) > 1
                assert -1 <= level / Decimal(float(epsilon[0])) - radius <= 1
                epsilon = np.nextafter(epsilon, 0)
    assert longer
