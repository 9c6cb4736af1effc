"""TEM: the sampler follows the closed form, the closed form keeps the promise."""

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lexveil.embeddings import neighborhoods
from lexveil.embeddings.exact_search import pair_distances
from lexveil.embeddings.kernels.sketch import sketch_bounds
from lexveil.mechanisms.kernels import tem as kernels
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.tem import Tem
from tests.mechanisms.toys import vectors


def test_bounds_of_the_distance_decide_as_the_distance_does() -> None:
    """Also for positions just beside the limit, bounds that are the distance itself, and those of the sketch."""
    some, rng = vectors(200), np.random.default_rng(5)
    sketch, bits, n_unsure = Tem(some).sketch, 40, 0
    for _ in range(1000):
        word, proposed = (int(number) for number in rng.integers(200, size=2))
        radius, half = rng.exponential(4), rng.exponential(2)
        edge = min(float(pair_distances(some, np.array([word]), np.array([proposed]))[0]), radius)
        limit = 2**bits * (Decimal(-half) * Decimal(edge)).exp()
        closest = sketch_bounds(sketch.rows, sketch.step, word, proposed)
        for q in (int(limit), int(limit) - 1, int(limit) + 1, int(limit * (1 - Decimal("1e-9"))), int(limit / 2)):
            wanted = kernels.ACCEPT if q + 1 <= limit else kernels.REFUSE if q >= limit else kernels.UNSURE
            for bounds in (closest, (edge, edge) if edge < radius else (radius, np.inf), (0.0, np.inf)):
                got = kernels.decide(some, (word, proposed), half, radius, max(q, 0), bits, bounds)
                assert got in (wanted, kernels.UNSURE)
                n_unsure += got != wanted
                if abs(q - limit) > 2 + limit * Decimal("1e-11"):
                    assert got == wanted
    assert n_unsure > 30


def test_rounding_is_bounded_by_what_is_stated() -> None:
    """Scores against exact ones of the same vectors; the sentence of the record is true of the largest spaces."""
    some = vectors(60)
    tem, worst = Tem(some), 0.0
    for word, other in itertools.product(range(60), repeat=2):
        rows = [[Fraction(float(value)) for value in some[row]] for row in (word, other)]
        exact = Decimal(0)
        with decimal.localcontext() as context:
            context.prec = 60
            square = sum((a - b) ** 2 for a, b in zip(*rows, strict=True))
            exact = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
            off = abs(Decimal(kernels.score(some, word, other, np.inf)) - exact)
            worst = max(worst, float(off / exact) if exact else float(off))
    assert 0 < worst <= (some.shape[1] + 4) * 2.0**-53
    epsilon = np.array([0.1, 1.0, 100.0])
    assert (tem.rounding(epsilon) <= 1e-12).all()
    gamma_times_epsilon = 2 * np.log(1e7 / 1e-12)
    assert 2 * (1000 + 4) * 2.0**-53 * gamma_times_epsilon < 1e-10


@pytest.mark.parametrize("bits", [None, 2], ids=["all bits", "undecided"])
def test_batches_lists_and_neighbours_change_nothing(bits: int | None) -> None:
    """Each token alone, or all at once with other epsilons beside it, by lists made before or now: the same words."""
    some, ids, budgets = vectors(50), np.arange(50), np.geomspace(0.05, 80, 50)
    tem, fresh, listed = Tem(some), Tem(some), Tem(some, neighborhoods.nearest_words(some, np.arange(30)))
    for one in (tem, fresh, listed):
        one.bits = bits or one.bits
    noise = tem.noise(budgets, stream(1, "x"))
    together = tem.replace(ids, budgets, noise).tolist()
    alone = [fresh.replace(ids[i : i + 1], budgets[i : i + 1], noise[i : i + 1])[0] for i in reversed(range(50))]
    assert together == alone[::-1] == listed.replace(ids, budgets, noise).tolist()
