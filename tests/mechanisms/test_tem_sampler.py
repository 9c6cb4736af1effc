"""TEM: its compiled samplers draw what a plain one draws from the same streams; its decisions,
rounding and measure."""

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lexveil.core.embeddings import neighborhoods
from lexveil.core.embeddings.exact_search import pair_distances
from lexveil.core.embeddings.kernels.sketch import sketch_bounds
from lexveil.core.embeddings.neighborhoods import nearest_words
from lexveil.core.mechanisms.kernels import tem as kernels
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.tem import Tem
from lexveil.readers.tem import SMALL_VOCABULARY, log_normalizers
from tests.mechanisms.toys import draw, fits, vectors


def clustered(n, p, seed=0):
    """Vectors in groups, near and far from each other, some of them equal."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, n // 20), p))
    vectors = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, p)) * rng.choice(
        [0.01, 0.5], size=(n, 1)
    )
    vectors[n // 2 : n // 2 + 3] = vectors[0]
    return vectors.astype(np.float32)


@pytest.mark.parametrize("bits", [None, 3], ids=["all bits", "undecided"])
@pytest.mark.parametrize("epsilon", [0.5, pytest.param(8.0, marks=pytest.mark.nightly)])
def test_draws_of_many_words_follow_the_closed_form(epsilon, bits):
    """The draws use whole lists of near words and all other words, and also exact arithmetic for
    most proposals."""
    tem = Tem(clustered(900, 40))
    tem.bits = bits or tem.bits
    law = np.exp(tem.log_pmf(np.array([7]), np.array([epsilon])))[0]
    assert fits(draw(tem, 7, epsilon, samples=4_000), law)


def squares_in_order(vectors, word):
    """Squared distances of one word to all, float64, added in the order of the dimensions."""
    total = np.zeros(len(vectors))
    for column in vectors.T.astype(np.float64):
        difference = column[word] - column
        total += difference * difference
    return total


@pytest.mark.parametrize(("n", "p"), [(1, 5), (2, 5), (64, 3), (300, 20), (900, 60)])
def test_lists_are_those_of_a_float64_scan(n, p):
    """Bit by bit, because they decide what is proposed; so also in any batches."""
    vectors = clustered(n, p)
    lists = nearest_words(vectors, np.arange(n))
    for word in range(n):
        squares = squares_in_order(vectors, word)
        squares[word] = -1  # the word itself comes first, also before its equals
        order = np.argsort(squares, kind="stable")[: lists.ids.shape[1]]
        np.testing.assert_array_equal(lists.ids[word], order)
        np.testing.assert_array_equal(lists.distances[word, 1:], np.sqrt(squares[order[1:]]))
    for word in (0, n // 2, n - 1):
        np.testing.assert_array_equal(
            nearest_words(vectors, np.array([word])).ids[0], lists.ids[word]
        )


def test_bounds_of_the_distance_decide_as_the_distance_does():
    """The positions include some just beside the limit; the bounds include the distance itself and
    those of the sketch.
    """
    some = vectors(200)
    rng = np.random.default_rng(5)
    sketch = Tem(some).sketch
    bits = 40
    n_unsure = 0
    for _ in range(1000):
        word, proposed = (int(number) for number in rng.integers(200, size=2))
        radius = rng.exponential(4)
        half = rng.exponential(2)
        edge = min(float(pair_distances(some, np.array([word]), np.array([proposed]))[0]), radius)
        limit = 2**bits * (Decimal(-half) * Decimal(edge)).exp()
        closest = sketch_bounds(sketch.rows, sketch.step, word, proposed)
        for q in (
            int(limit),
            int(limit) - 1,
            int(limit) + 1,
            int(limit * (1 - Decimal("1e-9"))),
            int(limit / 2),
        ):
            wanted = (
                kernels.ACCEPT
                if q + 1 <= limit
                else kernels.REFUSE
                if q >= limit
                else kernels.UNSURE
            )
            for bounds in (
                closest,
                (edge, edge) if edge < radius else (radius, np.inf),
                (0.0, np.inf),
            ):
                got = kernels.decide(some, (word, proposed), half, radius, max(q, 0), bits, bounds)
                assert got in (wanted, kernels.UNSURE)
                n_unsure += got != wanted
                if abs(q - limit) > 2 + limit * Decimal("1e-11"):
                    assert got == wanted
    assert n_unsure > 30


def test_rounding_is_bounded_by_what_is_stated():
    """Scores against exact ones of the same vectors; the sentence of the record is true of the
    largest spaces."""
    some = vectors(60)
    tem = Tem(some)
    worst = 0.0
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
def test_batches_lists_and_neighbours_change_nothing(bits):
    """Tokens give the same words alone or all at once with other epsilons, and with lists made
    before or now.
    """
    some = vectors(50)
    ids = np.arange(50)
    budgets = np.geomspace(0.05, 80, 50)
    tem = Tem(some)
    fresh = Tem(some)
    listed = Tem(some, neighborhoods.nearest_words(some, np.arange(30)))
    for one in (tem, fresh, listed):
        one.bits = bits or one.bits
    noise = tem.noise(budgets, stream(1, "x"))
    together = tem.replace(ids, budgets, noise).tolist()
    alone = [
        fresh.replace(ids[i : i + 1], budgets[i : i + 1], noise[i : i + 1])[0]
        for i in reversed(range(50))
    ]
    assert together == alone[::-1] == listed.replace(ids, budgets, noise).tolist()


N_WORDS = np.array([1, 2, 1, 3, 1, 1, 2, 1])


def toy(penalty=2, n=8, n_words=N_WORDS):
    vectors = np.random.default_rng(5).normal(size=(n, 3)).astype(np.float32)
    return Tem(vectors, n_words=n_words, beta=0.5, length_penalty=penalty)


@pytest.mark.parametrize("halvings", range(8))
def test_of_every_string_one_is_not_thinned(halvings):
    """A word of measure 2^-h passes for exactly that share of all bytes; h of 0 takes nothing of
    the stream."""
    state = np.zeros(16, dtype=np.uint32)
    passed = 0
    for value in range(256):
        stream_words = np.full(kernels.WORDS, value, dtype=np.uint64)
        is_thinned, place = kernels._is_thinned.py_func(state, stream_words, 5, halvings)
        assert place == 5 + (halvings > 0)
        passed += not is_thinned
    assert passed == 256 >> halvings


@pytest.mark.parametrize(
    ("n", "error"), [(50, 1e-9), (SMALL_VOCABULARY + 60, 0.2)], ids=["exactly", "by some words"]
)
def test_the_adversary_knows_the_sums_of_the_weights(n, error):
    epsilon = np.array([1.0, 6.0])
    n_words = np.resize(N_WORDS, n)
    tem = toy(2, n, n_words)
    sums = log_normalizers(tem, epsilon)
    for word in (0, 1, n - 1):
        distance = np.linalg.norm(tem.vectors.astype(np.float64) - tem.vectors[word], axis=1)
        score = np.minimum(epsilon[:, None] * distance / 2, np.log(n - 1))  # β = 0.5
        exact = np.log((0.25 ** (n_words - 1) * np.exp(-score)).sum(axis=1))
        assert np.allclose(sums[:, word], exact, atol=error)
