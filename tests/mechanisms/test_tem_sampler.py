"""TEM: its compiled samplers draw what a plain one draws from the same streams; its decisions, rounding and measure."""

import decimal
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from lexveil.embeddings import neighborhoods
from lexveil.embeddings.exact_search import pair_distances
from lexveil.embeddings.kernels.sketch import sketch_bounds
from lexveil.embeddings.neighborhoods import NearTable, nearest_words
from lexveil.mechanisms.kernels import tem as kernels
from lexveil.mechanisms.noise.keystream import token_stream
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.rejection import MARGIN, PENDING, ROUNDING
from lexveil.mechanisms.tem import ATTEMPTS, FIRST_NONCE, Tem
from lexveil.recovery.tem import SMALL, log_normalizers
from tests.mechanisms.toys import largest_loss, vectors

Proposal = tuple[int, int]  # a word, and its position in its envelope


def clustered(n: int, p: int, seed: int = 0) -> np.ndarray:
    """Vectors in groups, near and far from each other, some of them equal."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(1, n // 20), p))
    vectors = centres[rng.integers(len(centres), size=n)] + rng.normal(size=(n, p)) * rng.choice(
        [0.01, 0.5], size=(n, 1)
    )
    vectors[n // 2 : n // 2 + 3] = vectors[0]
    return vectors.astype(np.float32)


def points(key: np.ndarray, nonce: int, total: int) -> Iterator[int]:
    """Uniform whole numbers below ``total``."""
    stream, mask = token_stream(key, nonce), (1 << (total - 1).bit_length()) - 1
    while True:
        point = int(stream.random_raw()) & mask
        if point < total:
            yield point


def plain_draw(tem: Tem, word: int, epsilon: float, key: np.ndarray) -> int:
    """One replacement, from uniform proposals and, after too many, from the word's list."""
    token = np.array([word]), np.array([epsilon])
    radius, half, scale = float(tem.gamma(token[1])[0]), epsilon / 2, 1 << tem.bits

    def first(proposals: Iterator[Proposal], nonce: int) -> int:
        for number, (proposed, position) in enumerate(proposals):
            distance = min(float(pair_distances(tem.vectors, token[0], np.array([proposed]))[0]), radius)
            limit = scale * (Decimal(-half) * Decimal(distance)).exp()
            if position + 1 <= limit or (position < limit and exactly(proposed, position, nonce + 2 * number)):
                return proposed
        return PENDING

    def exactly(proposed: int, position: int, nonce: int) -> bool:
        tokens = SimpleNamespace(ids=token[0], epsilon=token[1], gamma=np.array([radius]), keys=key[None])
        return tem._is_accepted(tokens, proposed, position, nonce)

    with localcontext() as context:
        context.prec = 50
        if tem.plain(*token)[0]:
            uniform = points(key, 0, len(tem.vectors) << tem.bits)
            # The kernel decides on a proposal when it has the next one, so on one less than it makes.
            tries = (divmod(next(uniform), scale) for _ in range(ATTEMPTS - 1))
            if (drawn := first(tries, FIRST_NONCE)) != PENDING:
                return drawn
        near = nearest_words(tem.vectors, token[0])
        return first(from_list(tem, near, half, radius, key), FIRST_NONCE + 1)


def from_list(tem: Tem, near: NearTable, half: float, radius: float, key: np.ndarray) -> Iterator[Proposal]:
    """Proposals by shells of the nearest words, and by all words; one whose word is in the list is refused there."""
    members, distances = near.ids[0].tolist(), near.distances[0].tolist()
    n_words, scale, shells = len(tem.vectors), 1 << tem.bits, tem.shells.tolist()
    sizes = [*np.diff(shells).tolist(), n_words if n_words > len(members) else 0]
    bounds = [distances[min(shell, len(members) - 1)] * (1 - ROUNDING) for shell in shells]
    weights = [math.exp(-half * min(bound, radius)) for bound in bounds]
    envelopes = [min(scale, int(weight * (1 + MARGIN) * scale) + 1) for weight in weights]
    for point in points(key, 1, sum(size * envelope for size, envelope in zip(sizes, envelopes, strict=True))):
        shell = 0
        while point >= sizes[shell] * envelopes[shell]:
            point -= sizes[shell] * envelopes[shell]  # noqa: PLW2901 - from shell to shell
            shell += 1
        proposed, position = divmod(point, envelopes[shell])
        if shell < len(shells) - 1:
            yield members[shells[shell] + proposed], position
        else:
            yield proposed, scale if proposed in members else position


@pytest.mark.parametrize(("n", "p"), [(1, 3), (2, 3), (40, 5), (900, 40)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 40.0])
@pytest.mark.parametrize("bits", [None, 3], ids=["all bits", "undecided"])
def test_the_sampler_draws_what_the_plain_one_draws(n: int, p: int, epsilon: float, bits: int | None) -> None:
    tem = Tem(clustered(n, p))
    tem.bits = bits or tem.bits
    ids, epsilons = np.random.default_rng(1).integers(n, size=40), np.full(40, epsilon)
    keys = tem.noise(epsilons, np.random.default_rng(7))
    expected = [plain_draw(tem, word, epsilon, key) for word, key in zip(ids.tolist(), keys, strict=True)]
    assert tem.replace(ids, epsilons, keys).tolist() == expected


def squares_in_order(vectors: np.ndarray, word: int) -> np.ndarray:
    """Squared distances of one word to all, float64, added in the order of the dimensions."""
    total = np.zeros(len(vectors))
    for column in vectors.T.astype(np.float64):
        difference = column[word] - column
        total += difference * difference
    return total


@pytest.mark.parametrize(("n", "p"), [(1, 5), (2, 5), (64, 3), (300, 20), (900, 60)])
def test_lists_are_those_of_a_float64_scan(n: int, p: int) -> None:
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
        np.testing.assert_array_equal(nearest_words(vectors, np.array([word])).ids[0], lists.ids[word])


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


N_WORDS = np.array([1, 2, 1, 3, 1, 1, 2, 1])


def toy(penalty: int = 2, n: int = len(N_WORDS), n_words: np.ndarray | None = N_WORDS) -> Tem:
    vectors = np.random.default_rng(5).normal(size=(n, 3)).astype(np.float32)
    return Tem(vectors, n_words=n_words, beta=0.5, length_penalty=penalty)


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 25.0])
def test_the_loss_is_at_most_epsilon_times_distance(epsilon: float) -> None:
    """Exact, for all w, w' and y: the base measure takes no part in it."""
    assert largest_loss(toy(8), epsilon) <= 1e-9


@pytest.mark.parametrize("halvings", range(8))
def test_of_every_string_one_is_not_thinned(halvings: int) -> None:
    """A word of measure 2^-h passes for exactly that share of all bytes; h of 0 takes nothing of the stream."""
    state, passed = np.zeros(16, dtype=np.uint32), 0
    for value in range(256):
        stream_words = np.full(kernels.WORDS, value, dtype=np.uint64)
        is_thinned, place = kernels._is_thinned.py_func(state, stream_words, 5, halvings)
        assert place == 5 + (halvings > 0)
        passed += not is_thinned
    assert passed == 256 >> halvings


@pytest.mark.parametrize(("n", "error"), [(50, 1e-9), (SMALL + 60, 0.2)], ids=["exactly", "by some words"])
def test_the_adversary_knows_the_sums_of_the_weights(n: int, error: float) -> None:
    epsilon, n_words = np.array([1.0, 6.0]), np.resize(N_WORDS, n)
    tem = toy(2, n, n_words)
    sums = log_normalizers(tem, epsilon)
    for word in (0, 1, n - 1):
        distance = np.linalg.norm(tem.vectors.astype(np.float64) - tem.vectors[word], axis=1)
        score = np.minimum(epsilon[:, None] * distance / 2, np.log(n - 1))  # β = 0.5
        exact = np.log((0.25 ** (n_words - 1) * np.exp(-score)).sum(axis=1))
        assert np.allclose(sums[:, word], exact, atol=error)
