"""TEM's base measure: a replacement of several words weighs less, by a public number and alike for every input."""

from __future__ import annotations

import numpy as np
import pytest

from lexveil.mechanisms.kernels import tem as kernels
from lexveil.mechanisms.tem import Tem
from lexveil.recovery.tem import SMALL, log_normalizers
from tests.mechanisms.toys import largest_loss

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
