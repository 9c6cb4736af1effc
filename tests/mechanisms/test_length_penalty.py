"""TEM's base measure: a replacement of several words weighs less, by a public number and alike for every input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from lexveil.mechanisms.base import PublicCounts
from lexveil.mechanisms.kernels import tem as kernels
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import build_mechanism
from lexveil.mechanisms.tem import Tem
from lexveil.recovery.tem import SMALL, log_normalizers

SAMPLES = 40_000
FALSE_ALARM = 1e-6  # chance that a correct sampler fails; the seed is fixed, so paid once
N_WORDS = np.array([1, 2, 1, 3, 1, 1, 2, 1])
WORD = 2


def toy(penalty: int = 2, n: int = len(N_WORDS), n_words: np.ndarray | None = N_WORDS) -> Tem:
    vectors = np.random.default_rng(5).normal(size=(n, 3)).astype(np.float32)
    return Tem(vectors, n_words=n_words, beta=0.5, length_penalty=penalty)


def test_weights_by_the_definition() -> None:
    tem, epsilon = toy(), 3.0
    gamma = float(tem.gamma(np.array([epsilon]))[0])
    distance = np.linalg.norm(tem.vectors.astype(np.float64) - tem.vectors[WORD], axis=1)
    weight = 0.25 ** (N_WORDS - 1) * np.exp(-epsilon / 2 * np.minimum(distance, gamma))
    expected = np.log(weight / weight.sum())
    assert np.allclose(tem.log_pmf(np.array([WORD]), np.array([epsilon]))[0], expected, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 30.0], ids=["uniform proposals", "lists"])
@pytest.mark.parametrize(("penalty", "fits"), [(2, True), (1, False), (3, False)])
def test_draws_follow_the_weights(epsilon: float, penalty: int, fits: bool) -> None:
    """The two wrong penalties show that this test can say no."""
    n = 400
    vectors = np.random.default_rng(5).normal(size=(n, 3)).astype(np.float32)
    vectors[:8] *= 0.05  # near each other, so that near words of a list are drawn
    n_words = np.resize(N_WORDS, n)
    tem, claimed = (
        Tem(vectors, n_words=n_words, length_penalty=penalty),
        Tem(vectors, n_words=n_words, length_penalty=2),
    )
    assert bool(tem.plain(np.array([WORD]), np.array([epsilon]))[0]) == (epsilon < 1)
    budgets = np.full(SAMPLES, epsilon)
    drawn = tem.replace(np.full(SAMPLES, WORD), budgets, tem.noise(budgets, stream(7, "length penalty")))
    expected = SAMPLES * np.exp(claimed.log_pmf(np.array([WORD]), budgets[:1])[0])
    seen = np.bincount(drawn, minlength=n)
    rare = expected < 20
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    keep = expected > 1
    assert (
        chisquare(seen[keep], expected[keep] * seen[keep].sum() / expected[keep].sum()).pvalue > FALSE_ALARM
    ) == fits


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 25.0])
def test_the_loss_is_at_most_epsilon_times_distance(epsilon: float) -> None:
    """Exact, for all w, w' and y: the base measure takes no part in it."""
    tem = toy(8)
    ids = np.arange(tem.size)
    log_p = tem.log_pmf(ids, np.full(tem.size, epsilon))
    loss = np.abs(log_p[:, None] - log_p[None, :]).max(axis=2)
    distance = np.linalg.norm(tem.vectors[:, None].astype(np.float64) - tem.vectors[None], axis=2)
    assert np.all(loss <= epsilon * distance + 1e-9)


def test_single_words_are_drawn_as_without_it() -> None:
    ids, budgets = np.arange(8).repeat(50), np.linspace(0.1, 40, 400)
    plain, penalised = toy(0), toy(5, n_words=np.ones(8, dtype=np.int64))
    noise = plain.noise(budgets, stream(1))
    assert plain.replace(ids, budgets, noise).tolist() == penalised.replace(ids, budgets, noise).tolist()


def test_the_registry_hands_the_numbers_of_words_on() -> None:
    built = build_mechanism(
        "tem", toy().vectors, {"tem": {"length_penalty": 4}}, public=PublicCounts(N_WORDS, np.ones_like(N_WORDS))
    )
    assert isinstance(built, Tem)
    assert built.halvings.tolist() == (4 * (N_WORDS - 1)).tolist()


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
