"""Goodness-of-fit tests of sampled outputs against the distribution for which a claim is proven,
with the smallest difference that the tests would detect.

A bound on the loss alone reveals little about rare outputs. The distribution is known, so it is
compared, too. Events are fixed before the draws are examined: single words, and the sets of the k
words of largest probability. Each event is tested exactly by the binomial distribution. If the
distribution is known only from draws that the audit makes itself, the test is the binomial of the
two samples given their sum. The error probabilities of all events add up to at most the error
probability of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import binom, chi2, gamma, kstest, norm

from lexveil.base.types import Floats, Ids

LEAST_EXPECTED_DRAWS = 10.0  # least expected number of draws in an event, and outside it
SINGLE = 64  # number of words that are tested as single events
FACTORS = (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
POWER = 0.9
POWERED = 3  # number of samples (those with most draws) for which the power is computed


@dataclass(frozen=True, slots=True)
class FitResult:
    """Result of a test of draws against a distribution.

    Attributes:
        claimed: ε.
        tests: number of events that were tested.
        draws: total number of draws.
        error: probability that correct draws are reported as different.
        least: the smallest p-value of all events.
        worst: the event with this p-value, in words.
        factor: the smallest inflation of ε that this test detects with probability 0.9; None if it
            detects no inflation up to 8.
        copied: the smallest share of tokens that are copied from the source which this test detects
            with probability 0.9; None if the test does not examine copies, or detects none.
    """

    claimed: float
    tests: int
    draws: int
    error: float
    least: float
    worst: str
    factor: float | None
    violation: bool
    method: str = "distribution"
    copied: float | None = None

    @property
    def detail(self) -> str | None:
        """A description of the worst difference; its value is None without a violation."""
        return self.worst if self.violation else None

    @property
    def shown(self) -> str:
        """The power of the test as the text of a table cell."""
        if self.copied is not None:
            return f"1 copy in {1 / self.copied:,.0f}"
        return "-" if self.factor is None else f"factor {self.factor:g}"

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ClaimedDraws:
    """Sampled outputs of one input at one ε, and the distribution that is claimed for them.

    Attributes:
        counts: (W,) how often each word was drawn.
        mass: (W,) probability of each word; or, if ``reference`` is not 0, how often the word
            occurs among ``reference`` draws that the audit made itself.
        order: (W,) words by falling probability, equal ones by rising distance; fixed before the
            draws.
        inflated: function that returns the mass at f·ε, for a factor f; it serves to compute the
            power of the test.
    """

    name: str
    counts: Ids
    mass: Floats
    order: Ids
    reference: int = 0
    inflated: Callable[[float], Floats] | None = None


def events(order: Ids, mass: Floats, n: int) -> list[Ids]:
    """Return the events to test: the sets of the k likeliest words for several k, and single words
    for which at least ``LEAST_EXPECTED_DRAWS`` draws are expected with and without the word.
    """
    w = len(order)
    ends = sorted(
        {2**i for i in range(w.bit_length())}
        | {w - 2**i for i in range(w.bit_length())} & set(range(1, w))
    )
    single = [order[i : i + 1] for i in range(min(SINGLE, w))]
    # Rare sets are tested, too: they show whether rare words are drawn too often.
    return [order[:end] for end in ends if 0 < end < w] + [
        some
        for some in single
        if LEAST_EXPECTED_DRAWS <= n * float(mass[some].sum()) <= n - LEAST_EXPECTED_DRAWS
    ]


def distribution_audit(samples: Sequence[ClaimedDraws], epsilon: float, error: float) -> FitResult:
    """Test whether all samples follow their claimed distributions, as one test.

    Args:
        error: the probability of a false alarm.
    """
    tested = []
    for sample in samples:
        n = int(sample.counts.sum())
        share = sample.mass / sample.reference if sample.reference else sample.mass
        tested.append((sample, n, share, events(sample.order, share, n)))
    total = sum(len(sets) for *_, sets in tested) + len(tested)
    each = error / max(total, 1)
    least = 1.0
    worst = ""
    draws = 0
    for sample, n, share, sets in tested:
        draws += n
        for some in sets:
            count = sample.counts[some].sum()
            expected = share[some].sum()
            chance = float(chances(count, np.asarray(n), expected, sample.reference))
            if chance < least:
                least = chance
                worst = f"{sample.name}: {_named(some, sample.order)}"
        impossible = 0 if sample.reference else int(sample.counts[sample.mass <= 0].sum())
        if impossible:
            least = 0.0
            worst = f"{sample.name}: {impossible:,} draws of words that the claim excludes"
    powered = sorted(tested, key=lambda one: -one[1])[:POWERED]
    factor = next((f for f in FACTORS if any(_sees(one, f, each) for one in powered)), None)
    return FitResult(epsilon, total, draws, error, least, worst, factor, least < each)


def _named(some: Ids, order: Ids) -> str:
    return (
        f"word {int(some[0])}"
        if len(some) == 1
        else f"the {len(some):,} likeliest of {len(order):,} words"
    )


def chances(seen: Ids, n: Ids, share: Floats, reference: Ids | int = 0) -> Floats:
    """Return exact two-sided p-values of event counts among n draws, given the expected shares.
    With reference samples, the p-values are conditional on the sum of both counts.
    """
    if np.any(reference):
        total = seen + np.rint(share * reference).astype(np.int64)
        share = n / (n + reference)
        n = total
    tails = np.minimum(binom.cdf(seen, n, share), binom.sf(seen - 1, n, share))
    return np.asarray(np.minimum(1.0, 2 * tails))


def _sees(tested: tuple[ClaimedDraws, int, Floats, list[Ids]], factor: float, each: float) -> bool:
    """Return whether a test of one event alone would detect an inflation of ε to f·ε with
    probability ``POWER``, in normal approximation.
    """
    sample, n, share, sets = tested
    if sample.inflated is None:
        return False
    other = sample.inflated(factor)
    wider = 1 / n + (1 / sample.reference if sample.reference else 0)
    z = float(norm.isf(each / 2))
    more = float(norm.isf(1 - POWER))
    for some in sets:
        p = min(1.0, float(share[some].sum()))
        q = min(1.0, float(other[some].sum()))
        if abs(p - q) > z * np.sqrt(p * (1 - p) * wider) + more * np.sqrt(q * (1 - q) * wider):
            return True
    return False


def ball_audit(noise: Floats, epsilon: float, error: float) -> FitResult:
    """Test whether noise vectors, (n, p), have the claimed density ∝ exp(-ε|z|) after a linear map.
    The test compares the radius, both tails of the radius, and the directions.

    The tails show whether the noise is truncated; no word is so rare an output that single words
    would show it.
    """
    n, p = noise.shape
    length = np.sqrt(np.einsum("np,np->n", noise, noise))
    radius = length * epsilon
    unit = noise / np.maximum(length, 1e-300)[:, None]
    low = float(gamma.cdf(radius.min(), p))
    high = float(gamma.sf(radius.max(), p))
    squares = (unit**2).mean(axis=0)
    deviation = np.sqrt(2 * (p - 1) / (p * p * (p + 2)) / n) if p > 1 else 1.0
    chances = {
        "the radii": float(kstest(radius, gamma(p).cdf).pvalue),
        # The smallest of n uniform numbers is above x with probability (1 - x)^n.
        "the largest radius: the tail of the noise is cut": float(np.exp(n * np.log1p(-high))),
        "the largest radius: the tail of the noise is too long": float(
            -np.expm1(n * np.log1p(-high))
        ),
        "the smallest radius": float(np.exp(n * np.log1p(-low))),
        "the mean direction": float(chi2.sf(n * p * float((unit.mean(axis=0) ** 2).sum()), p)),
        "the spread of directions": float(
            min(1.0, 2 * p * norm.sf(float(np.abs(squares - 1 / p).max()) / deviation))
        ),
    }
    worst = min(chances, key=lambda name: chances[name])
    need = (float(np.sqrt(-np.log(error / len(chances) / 2) / 2)) + 0.9) / np.sqrt(n)
    grid = gamma.ppf(np.linspace(0.005, 0.995, 199), p)
    factor = next(
        (
            f
            for f in FACTORS
            if float(np.abs(gamma.cdf(grid, p) - gamma.cdf(grid * f, p)).max()) > need
        ),
        None,
    )
    each = error / len(chances)
    return FitResult(
        epsilon, len(chances), n, error, chances[worst], worst, factor, chances[worst] < each
    )


def independence_audit(
    pairs: dict[str, tuple[Ids, Ids]], error: float, epsilon: float
) -> FitResult:
    """Test whether pairs of outputs that must be independent are equal more or less often than
    pairs in random order.

    Args:
        pairs: pairs of sequences of outputs, by the name of the pair; the two sequences may have
            different ε.
    """
    least = 1.0
    worst = ""
    draws = 0
    for name, (first, second) in pairs.items():
        n = len(first)
        draws += n
        kinds, which = np.unique(np.concatenate([first, second]), return_inverse=True)
        share = (
            float(
                np.dot(
                    *(np.bincount(side, minlength=len(kinds)) for side in (which[:n], which[n:]))
                )
            )
            / max(n, 1) ** 2
        )
        # Neighbouring pairs have draws in common: three times the variance is an upper bound for
        # that.
        deviation = np.sqrt(3 * share * (1 - share) / n + (0.01 * share) ** 2) if n else 1.0
        z = abs(float((first == second).mean()) - share) / max(deviation, 1e-12) if n else 0.0
        chance = float(min(1.0, 2 * norm.sf(z)))
        if chance < least:
            least = chance
            worst = name
    each = error / max(len(pairs), 1)
    return FitResult(
        epsilon, len(pairs), draws, error, least, worst, None, least < each, "independence"
    )
