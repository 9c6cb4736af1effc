"""The audit of samples: its error rates, its power, and that it catches what is broken and spares what is not.

All sampled audits of correct mechanisms in this suite may each fail by chance with probability ``FALSE_ALARM``; the
seeds are fixed, so that this was paid once. What must be caught has a power computed beforehand or an asserted margin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from audit_toys import (
    FALSE_ALARM,
    HalfNoise,
    distances_of,
    sampled,
    toy_vectors,
)
from scipy.stats import binom

from lexveil.auditing.sampled import loss_bound, power_at, sampled_audit
from lexveil.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.mechanisms.diffractor_tem import DiffractorTem
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.mahalanobis import Mahalanobis
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.rank_remap import RankRemap
from lexveil.mechanisms.tem import Tem
from lexveil.mechanisms.vickrey import Vickrey

RUNS = 200


@pytest.mark.parametrize("error", [0.05, 1e-3])
@pytest.mark.parametrize("n", [5, 40])
def test_the_bound_of_one_comparison_covers(n: int, error: float) -> None:
    """Exact, over all outcomes of two binomial counts: it exceeds the truth with probability at most 2·error."""
    counts = np.arange(n + 1)
    bounds = np.array([[loss_bound(a, b, n, n, error) for b in counts] for a in counts])
    for p in (0.02, 0.2, 0.5, 0.9, 1.0):
        for q in (1e-4, 0.01, 0.2, 0.5, 1.0):
            joint = np.outer(binom.pmf(counts, n, p), binom.pmf(counts, n, q))
            assert joint[bounds > np.log(p) - np.log(q)].sum() <= 2 * error


def test_the_bound_by_hand() -> None:
    """Never seen under b in n draws: q is at most 1 - error^(1/n). Always seen under a: p is at least error^(1/n)."""
    n, error = 1000, 0.01
    root = error ** (1 / n)
    assert loss_bound(n, 0, n, n, error) == pytest.approx(np.log(root) - np.log(1 - root), rel=1e-9)
    assert loss_bound(0, 0, n, n, error) == -np.inf
    assert loss_bound(n, n, n, n, error) == pytest.approx(np.log(root), rel=1e-9)


def coins(chances: list[float], run: int, samples: int, *, stale: bool = False) -> list[Any]:
    """Inputs that give 1 with these chances; ``stale`` shows the same 50 draws at every stage: an audit that peeks."""
    rng = stream(3, "coins", str(run))
    draws = [rng.random(50 if stale else samples) < chance for chance in chances]
    return [np.resize(drawn, samples).astype(np.int64) for drawn in draws]


def alarms_expected(runs: int, chance: float) -> float:
    """No more than this, 6 standard deviations above the mean, unless the chance is larger than stated."""
    return float(runs * chance + 6 * np.sqrt(runs * chance * (1 - chance)))


@pytest.mark.parametrize("stale", [False, True])
def test_false_alarms_are_as_rare_as_stated(stale: bool) -> None:
    """Twenty equal coins of which nothing may be learnt, the most tempting of 380 comparisons, confidence 0.9.

    The same audit judging on the samples by which it chose, the mistake this design avoids, alarms far more often: so
    this test can say no.
    """
    draws = (coins([0.3] * 20, run, 200, stale=stale) for run in range(RUNS))
    alarms = sum(sampled_audit(each, np.zeros((20, 20)), 1.0, 0.9, comparisons=1).violation for each in draws)
    assert (alarms > alarms_expected(RUNS, 0.1)) == stale


def test_losses_at_the_very_bound_raise_no_alarm() -> None:
    """Coins whose loss is exactly what is claimed, all six comparisons, confidence 0.95."""
    chances = [0.6, 0.3, 0.15]
    allowed = np.array([[0.0 if a == b else abs(np.log(a / b)) for b in chances] for a in chances])
    tails = 1 - np.array(chances)  # differ by less
    assert (np.abs(np.log(tails[:, None] / tails)) <= allowed + 1e-12).all()
    alarms = sum(sampled_audit(coins(chances, run, 2000), allowed, 1.0, 0.95).violation for run in range(RUNS))
    assert alarms <= alarms_expected(RUNS, 0.05)


def test_power_is_what_it_says_and_grows_with_samples() -> None:
    """At the loss that ``power_at`` names 9 of 10 audits or more find it; 6 standard deviations of slack."""
    allowed, samples = np.array([[0.0, 1.0], [1.0, 0.0]]), 2000
    loss = power_at(1.0, 0.5, samples // 2, 2, 0.999)
    assert loss is not None and 1 < loss < 2
    chances = [0.5, 0.5 * np.exp(-loss)]
    found = sum(sampled_audit(coins(chances, run, samples), allowed, 1.0, 0.999).violation for run in range(RUNS))
    assert RUNS - found <= alarms_expected(RUNS, 0.1)
    powers = [power_at(1.0, 0.1, n, 32, 0.999) for n in (100, 1_000, 10_000, 100_000)]
    assert powers[0] is None and powers[-1] is not None and powers[-1] < 1.2
    assert powers[1:] == sorted(powers[1:], reverse=True)


CORRECT: dict[str, Callable[[Any], Any]] = {
    "madlib": Madlib,
    "mahalanobis": Mahalanobis,
    "vickrey": Vickrey,
    "vickrey t=0": partial(Vickrey, t=0.0),
    "vickrey k=3": partial(Vickrey, t=[0.1, 0.5, 2.0], k=3),
    "madlib, ranks remapped": lambda vectors: RankRemap(Madlib(vectors), c=0.5, ranks=8),
    "tem": Tem,
    "tem beta .5": partial(Tem, beta=0.5),
    "geometric": lambda vectors: DiffractorGeometric(order_of(vectors)),
    "geometric on two lists": lambda vectors: DiffractorGeometric([order_of(vectors), order_of(-vectors[:, ::-1])]),
    "1-D tem": lambda vectors: DiffractorTem(order_of(vectors)),
    "1-D tem beta .5": lambda vectors: DiffractorTem(order_of(vectors), beta=0.5),
}


def words(shape: str) -> Any:
    """The toys at ε = 1, and words in so many dimensions."""
    if shape in ("line", "plane"):
        return toy_vectors(shape, 1.0)
    return np.random.default_rng(4).standard_normal((10 if shape != "10" else 40, int(shape))).astype(np.float32)


@pytest.mark.parametrize("shape", ["line", "plane", "3"])
@pytest.mark.parametrize("name", ["madlib", "mahalanobis", "vickrey", "vickrey k=3", "geometric"])
def test_half_the_noise_is_caught(name: str, shape: str) -> None:
    vectors = words(shape)
    result = sampled(HalfNoise(CORRECT[name](vectors)), len(vectors), 1.0)
    assert result.violation and result.audited > 1.05


def test_a_function_of_the_word_is_caught() -> None:
    """A seed that every release shares makes the output a function of the input; one that tells nothing is private."""
    mechanism, ids = Madlib(words("line")), np.arange(8)
    out = mechanism.replace(ids, np.ones(8), np.repeat(mechanism.noise(np.ones(1), stream(6, "shared")), 8, axis=0))
    allowed = distances_of(mechanism)(ids, ids)
    assert sampled_audit([np.full(2000, word) for word in out], allowed, 1.0, 1 - FALSE_ALARM).violation
    assert not sampled_audit([np.zeros(2000, np.int64)] * 8, allowed, 1.0, 0.999).violation


def test_words_at_one_place() -> None:
    """Nothing is allowed between them: equal distributions pass, different ones show an infinite loss per distance."""
    vectors = np.array([[0.0], [0.0], [1.0]], dtype=np.float32)
    assert not sampled(Madlib(vectors), 3, 1.0).violation

    class Knows(Madlib):
        def replace(self, ids, epsilon, noise):
            return np.where(noise[:, 0] > 0, ids, super().replace(ids, epsilon, noise))

    result = sampled(Knows(vectors), 3, 1.0)
    assert result.violation and result.audited == np.inf
    assert result.worst is not None and set(result.worst.inputs) == {0, 1}


def test_no_claim_no_verdict() -> None:
    result = sampled_audit(coins([0.1, 0.5, 0.9], 0, 200), np.full((3, 3), np.inf), 1.0, 0.99)
    assert (result.violation, result.comparisons, result.worst) == (False, 0, None)
