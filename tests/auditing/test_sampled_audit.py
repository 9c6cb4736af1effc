"""The audit of samples: its error rates, its power, and that it catches what is broken and spares what is not.

All sampled audits of correct mechanisms in this suite, some 60 of them, may each fail by chance with probability
``FALSE_ALARM``; the seeds are fixed, so that this was paid once. What must be caught has a power computed beforehand or
a margin that is asserted.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from audit_toys import (
    FALSE_ALARM,
    SAMPLES,
    Table,
    Vickrey,
    WrongScale,
    WrongShape,
    distances_of,
    exact,
    fixed,
    geometric,
    line,
    sampled,
    tem,
    tem_ball_missing,
    tem_bottom,
    toy_vectors,
)
from scipy.stats import binom

from lexveil.auditing.sampled import loss_bound, power_at, sampled_audit
from lexveil.errors import ParameterError
from lexveil.mechanisms.madlib import Madlib
from lexveil.mechanisms.noise.streams import stream


def words(shape: str, epsilon: float) -> np.ndarray:
    if shape in ("line", "plane"):
        return toy_vectors(shape, epsilon)
    vectors = np.random.default_rng(4).standard_normal((10, int(shape)))
    return np.asarray(vectors / epsilon, dtype=np.float32)


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


RUNS = 200


def coins(chances: list[float], seed: int, run: int, stale: bool = False):
    """Inputs that give 1 with these chances; ``stale`` shows the same 50 draws at every stage: an audit that peeks."""

    def sample(number: int, n: int, stage: str) -> np.ndarray:
        rng = stream(seed, "coins", str(run), "" if stale else stage, str(number))
        drawn = rng.random(50 if stale else n) < chances[number]
        return np.resize(drawn, n).astype(np.int64)

    return sample


def alarms_expected(runs: int, chance: float) -> float:
    """No more than this, 6 standard deviations above the mean, unless the chance is larger than stated."""
    return float(runs * chance + 6 * np.sqrt(runs * chance * (1 - chance)))


@pytest.mark.parametrize("stale", [False, True])
def test_false_alarms_are_as_rare_as_stated(stale: bool) -> None:
    """Twenty equal coins of which nothing may be learnt, the most tempting of 380 comparisons, confidence 0.9.

    The same audit judging on the samples by which it chose, the mistake this design avoids, alarms far more often: so
    this test can say no.
    """
    allowed = np.zeros((20, 20))
    alarms = sum(
        sampled_audit(coins([0.3] * 20, 3, run, stale), allowed, 1.0, 200, 0.9, comparisons=1).violation
        for run in range(RUNS)
    )
    assert (alarms > alarms_expected(RUNS, 0.1)) == stale


def test_losses_at_the_very_bound_raise_no_alarm() -> None:
    """Coins whose loss is exactly what is claimed, all six comparisons, confidence 0.95."""
    chances = [0.6, 0.3, 0.15]
    allowed = np.array([[0.0 if a == b else abs(np.log(a / b)) for b in chances] for a in chances])
    tails = 1 - np.array(chances)  # differ by less
    assert (np.abs(np.log(tails[:, None] / tails)) <= allowed + 1e-12).all()
    alarms = sum(sampled_audit(coins(chances, 4, run), allowed, 1.0, 2000, 0.95).violation for run in range(RUNS))
    assert alarms <= alarms_expected(RUNS, 0.05)


@pytest.mark.parametrize("samples", [2000, 8000])
def test_power_is_what_it_says(samples: int) -> None:
    """At the loss that ``power_at`` names 9 of 10 audits or more find it; 6 standard deviations of slack."""
    allowed = np.array([[0.0, 1.0], [1.0, 0.0]])
    loss = power_at(1.0, 0.5, samples // 2, 2, 0.999)
    assert loss is not None and 1 < loss < 2
    chances = [0.5, 0.5 * np.exp(-loss)]
    found = sum(sampled_audit(coins(chances, 5, run), allowed, 1.0, samples, 0.999).violation for run in range(RUNS))
    assert RUNS - found <= alarms_expected(RUNS, 0.1)


def test_power_grows_with_samples() -> None:
    powers = [power_at(1.0, 0.1, n, 32, 0.999) for n in (100, 1_000, 10_000, 100_000)]
    assert powers[0] is None
    assert powers[1:] == sorted(powers[1:], reverse=True)
    assert powers[-1] is not None and powers[-1] < 1.2


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("shape", ["line", "plane", "3", "20"])
@pytest.mark.parametrize(
    "make",
    [Madlib, Vickrey, partial(Vickrey, t=0.0), WrongScale],
    ids=["madlib", "vickrey", "vickrey t=0", "half noise"],
)
def test_additive_noise(make, shape: str, epsilon: float) -> None:
    """Correct noise passes everywhere. Half of it is caught in up to 3 dimensions; in 20 no event of noticeable

    probability exceeds the claim: there the audit is blind, which is why it always looks at toys too.
    """
    vectors = words(shape, epsilon)
    mechanism = make(vectors)
    result = sampled(mechanism, len(vectors), epsilon, SAMPLES)
    if isinstance(mechanism, WrongScale):
        assert result.violation == (shape != "20")
        assert shape == "20" or result.audited > 1.1 * epsilon
    else:
        assert not result.violation
        assert result.audited > 0.1 * epsilon or shape == "20"


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("shape", ["plane", "3", "20"])
def test_a_radius_of_the_wrong_dimension_is_caught(shape: str, epsilon: float) -> None:
    """An exponential radius in p > 1 dimensions: the density has a pole at the word itself."""
    vectors = words(shape, epsilon)
    assert sampled(WrongShape(vectors), len(vectors), epsilon, SAMPLES).violation


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("shape", ["line", "plane", "3"])
def test_vickrey_without_its_input_is_caught(shape: str, epsilon: float) -> None:
    """The word itself never comes out of it and comes out of its neighbours often."""
    vectors = words(shape, epsilon)
    result = sampled(Vickrey(vectors, exclude_input=True), len(vectors), epsilon, SAMPLES)
    assert result.violation
    assert result.worst is not None and result.worst.seen[1] == 0
    assert result.audited > 2 * epsilon


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize(
    ("law", "broken"),
    [
        (tem, False),
        (fixed(tem, beta=0.5), False),
        (fixed(tem_bottom, beta=0.5, mistaken=False), False),
        (geometric, False),
        (tem_ball_missing, True),
        (lambda distances, claimed: geometric(distances, 2 * claimed), True),
    ],
    ids=["tem", "tem beta .5", "two steps", "geometric", "ball missing", "half geometric"],
)
def test_laws_by_their_samples(law, broken: bool, epsilon: float) -> None:
    """What the exact audit says of a law, samples of it say too; the bound never exceeds the exact loss."""
    distances = line(*[0.5 / epsilon] * 9)
    if law is geometric or (broken and law is not tem_ball_missing):
        distances, epsilon = line(*[1.0] * 9), min(epsilon, 1.0)
    result = sampled(Table(distances, law), len(distances), epsilon, SAMPLES)
    assert result.violation == broken
    table = law(distances, epsilon)
    apart = ~np.eye(len(distances), dtype=bool)
    losses = np.abs(table[:, None] - table[None]).max(axis=2)[apart] / distances[apart]
    assert result.audited <= losses.max() * (1 + 1e-9)


def test_the_slip_in_the_score_of_elsewhere_by_its_samples() -> None:
    """22 words near 0 and 20 words at γ from the middle of those: half of the first have the second in their ball."""
    places = np.concatenate([np.arange(22) * 0.01, 1.62 + np.arange(20) * 0.001])
    distances = np.abs(places[:, None] - places[None])
    for mistaken in (False, True):
        law = fixed(tem_bottom, beta=0.9, mistaken=mistaken)
        assert exact(distances, law, 2.0).violation == mistaken
        assert sampled(Table(distances, law), 42, 2.0, SAMPLES).violation == mistaken


def test_a_function_of_the_word_is_caught() -> None:
    """A seed that every release shares makes the output a function of the input."""
    vectors = words("line", 1.0)
    distances = distances_of(Madlib(vectors))(np.arange(8), np.arange(8))

    def same(number: int, n: int, stage: str) -> np.ndarray:
        mechanism = Madlib(vectors)
        one = mechanism.noise(np.ones(1), stream(6, "shared"))
        return np.repeat(mechanism.replace(np.array([number]), np.ones(1), one), n)

    result = sampled_audit(same, distances, 1.0, 2000, 1 - FALSE_ALARM)
    assert result.violation
    constant = sampled_audit(lambda number, n, stage: np.zeros(n, dtype=np.int64), distances, 1.0, 2000, 0.999)
    assert not constant.violation  # a function that tells nothing is private


def test_words_at_one_place() -> None:
    """Nothing is allowed between them: equal laws pass, different ones show an infinite loss per distance."""
    vectors = np.array([[0.0], [0.0], [1.0]], dtype=np.float32)
    assert not sampled(Madlib(vectors), 3, 1.0, SAMPLES).violation

    class Knows(Madlib):
        def replace(self, ids, epsilon, noise):
            return np.where(noise[:, 0] > 0, ids, super().replace(ids, epsilon, noise))

    result = sampled(Knows(vectors), 3, 1.0, SAMPLES)
    assert result.violation and result.audited == np.inf
    assert result.worst is not None and set(result.worst.inputs) == {0, 1}


def test_no_claim_no_verdict() -> None:
    nothing = np.full((3, 3), np.inf)
    result = sampled_audit(coins([0.1, 0.5, 0.9], 1, 0), nothing, 1.0, 200, 0.99)
    assert (result.violation, result.comparisons, result.worst) == (False, 0, None)


def test_an_output_first_seen_in_the_test_is_in_no_event() -> None:
    def sample(number: int, n: int, stage: str) -> np.ndarray:
        return np.full(n, 99 if stage == "test" else number, dtype=np.int64)

    assert not sampled_audit(sample, np.ones((2, 2)), 1.0, 400, 0.99).violation


def test_the_same_audit_twice() -> None:
    vectors = words("plane", 1.0)
    first, second = (sampled(Madlib(vectors), 12, 1.0, 1000) for _ in range(2))
    assert first == second
    assert sampled(Madlib(vectors), 12, 1.0, 1000, seed=2) != first


@pytest.mark.parametrize(("samples", "confidence"), [(39, 0.9), (400, 0.0), (400, 1.0)])
def test_bad_requests(samples: int, confidence: float) -> None:
    with pytest.raises(ParameterError):
        sampled_audit(coins([0.5, 0.5], 1, 0), np.ones((2, 2)), 1.0, samples, confidence)
