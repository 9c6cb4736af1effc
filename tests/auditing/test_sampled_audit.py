"""The audit of samples: its error rates, its power, and that it catches what is broken and spares
what is not.

All sampled audits of correct mechanisms in this suite may each fail by chance with probability
``FALSE_ALARM``; the seeds are fixed, so that this was paid once. What must be caught has a power
computed beforehand or an asserted margin.
"""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from lexveil.auditing.sampled import loss_bound, power_at, sampled_audit
from lexveil.auditing.toy_spaces import places_of
from lexveil.core.mechanisms.diffractor_geometric import DiffractorGeometric
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.mechanisms.vickrey import Vickrey

RUNS = 200
SAMPLES = 8_000
FALSE_ALARM = 1e-6  # of each audit: the chance that it flags a mechanism that keeps its claim


@pytest.mark.parametrize("error", [0.05, 1e-3])
@pytest.mark.parametrize("n", [5, 40])
def test_the_bound_of_one_comparison_covers(n, error):
    """Exact, over all outcomes of two binomial counts: it exceeds the truth with probability at
    most 2·error."""
    counts = np.arange(n + 1)
    bounds = np.array([[loss_bound(a, b, n, n, error) for b in counts] for a in counts])
    for p in (0.02, 0.2, 0.5, 0.9, 1.0):
        for q in (1e-4, 0.01, 0.2, 0.5, 1.0):
            joint = np.outer(binom.pmf(counts, n, p), binom.pmf(counts, n, q))
            assert joint[bounds > np.log(p) - np.log(q)].sum() <= 2 * error


def test_the_bound_by_hand():
    """Never seen under b in n draws: q is at most 1 - error^(1/n). Always seen under a: p is at
    least error^(1/n)."""
    n = 1000
    error = 0.01
    root = error ** (1 / n)
    assert loss_bound(n, 0, n, n, error) == pytest.approx(np.log(root) - np.log(1 - root), rel=1e-9)
    assert loss_bound(0, 0, n, n, error) == -np.inf
    assert loss_bound(n, n, n, n, error) == pytest.approx(np.log(root), rel=1e-9)


def coins(chances, run, samples, *, stale=False):
    """Inputs that give 1 with these chances; ``stale`` shows the same 50 draws at every stage: an
    audit that peeks."""
    rng = stream(3, "coins", str(run))
    draws = [rng.random(50 if stale else samples) < chance for chance in chances]
    return [np.resize(drawn, samples).astype(np.int64) for drawn in draws]


def alarms_expected(runs, chance):
    """No more than this, 6 standard deviations above the mean, unless the chance is larger than
    stated."""
    return float(runs * chance + 6 * np.sqrt(runs * chance * (1 - chance)))


@pytest.mark.parametrize("stale", [False, True])
def test_false_alarms_are_as_rare_as_stated(stale):
    """Twenty equal coins of which nothing may be learnt, the most tempting of 380 comparisons,
    confidence 0.9.

    The same audit judging on the samples by which it chose, the mistake this design avoids, alarms
    far more often: so this test can say no.
    """
    draws = (coins([0.3] * 20, run, 200, stale=stale) for run in range(RUNS))
    alarms = sum(
        sampled_audit(each, np.zeros((20, 20)), 1.0, 0.9, comparisons=1).violation for each in draws
    )
    assert (alarms > alarms_expected(RUNS, 0.1)) == stale


def test_power_is_what_it_says_and_grows_with_samples():
    """At least 9 of 10 audits find the loss that ``power_at`` names; the test allows 6 standard
    deviations of slack.
    """
    allowed = np.array([[0.0, 1.0], [1.0, 0.0]])
    samples = 2000
    loss = power_at(1.0, 0.5, samples // 2, 2, 0.999)
    assert loss is not None and 1 < loss < 2
    chances = [0.5, 0.5 * np.exp(-loss)]
    found = sum(
        sampled_audit(coins(chances, run, samples), allowed, 1.0, 0.999).violation
        for run in range(RUNS)
    )
    assert RUNS - found <= alarms_expected(RUNS, 0.1)
    powers = [power_at(1.0, 0.1, n, 32, 0.999) for n in (100, 1_000, 10_000, 100_000)]
    assert powers[0] is None and powers[-1] is not None and powers[-1] < 1.2
    assert powers[1:] == sorted(powers[1:], reverse=True)


WORDS = places_of("line").astype(np.float32)
MECHANISMS = [
    Madlib,
    Mahalanobis,
    Vickrey,
    partial(Vickrey, t=[0.1, 0.5, 2.0], k=3),
    lambda vectors: DiffractorGeometric(np.argsort(vectors[:, 0], kind="stable")),
]


def allowed_by(mechanism):
    """ε·d of its words, ε = 1."""
    n = mechanism.size
    return mechanism.distance(*np.divmod(np.arange(n * n), n)).reshape(n, n)


def sampled(mechanism, times=1.0):
    """Draws of each of its words at so many times the ε of 1 that is claimed."""
    n = mechanism.size
    budgets = np.full(SAMPLES, times)
    noise = [mechanism.noise(budgets, stream(1, "suite", str(word))) for word in range(n)]
    draws = [mechanism.replace(np.full(SAMPLES, word), budgets, noise[word]) for word in range(n)]
    return sampled_audit(draws, allowed_by(mechanism), 1.0, 1 - FALSE_ALARM)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("build", MECHANISMS)
def test_half_the_noise_is_caught_and_all_of_it_is_not(build, times):
    result = sampled(build(WORDS), times)
    assert result.violation == (times == 2) and (times == 1 or result.audited > 1.05)


def test_a_function_of_the_word_is_caught():
    """A seed that every release shares makes the output a function of the input; one that tells
    nothing is private."""
    mechanism = Madlib(WORDS)
    ids = np.arange(8)
    out = mechanism.replace(
        ids, np.ones(8), np.repeat(mechanism.noise(np.ones(1), stream(6, "shared")), 8, axis=0)
    )
    allowed = allowed_by(mechanism)
    assert sampled_audit(
        [np.full(2000, word) for word in out], allowed, 1.0, 1 - FALSE_ALARM
    ).violation
    assert not sampled_audit([np.zeros(2000, np.int64)] * 8, allowed, 1.0, 0.999).violation


def test_words_at_one_place():
    """No loss is allowed between words at one place: equal distributions pass, different ones show
    an infinite loss per distance.
    """
    vectors = np.array([[0.0], [0.0], [1.0]], dtype=np.float32)
    assert not sampled(Madlib(vectors)).violation

    class Knows(Madlib):
        def replace(self, ids, epsilon, noise):
            return np.where(noise[:, 0] > 0, ids, super().replace(ids, epsilon, noise))

    result = sampled(Knows(vectors))
    assert result.violation and result.audited == np.inf
    assert result.worst is not None and set(result.worst.inputs) == {0, 1}


def test_no_claim_no_verdict():
    result = sampled_audit(coins([0.1, 0.5, 0.9], 0, 200), np.full((3, 3), np.inf), 1.0, 0.99)
    assert (result.violation, result.comparisons, result.worst) == (False, 0, None)
