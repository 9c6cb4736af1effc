"""The compiled samplers of TEM draw, token by token, what a plain one draws from the same streams."""

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from types import SimpleNamespace

import numpy as np
import pytest

from lexveil.embeddings.exact_search import pair_distances
from lexveil.embeddings.neighborhoods import NearTable, nearest_words
from lexveil.mechanisms.noise.keystream import token_stream
from lexveil.mechanisms.rejection import MARGIN, PENDING, ROUNDING
from lexveil.mechanisms.tem import ATTEMPTS, FIRST_NONCE, Tem

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
