"""Whether draws follow the distribution that a claim is proven of, and how small a difference would
have been seen.

A loss bound alone sees little of what is rare; the distribution is known, so it is compared too.
Events are fixed before the draws are looked at: single words, and the sets of the k words of
largest probability. Each is tested exactly, by the binomial distribution, or, where the audit has
only draws of its own, by the binomial of the two samples given their sum. The errors of all events
together are at most the error of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import binom, chi2, gamma, kstest, norm

from lexveil.base.types import Floats, Ids

LEAST_EXPECTED_DRAWS = 10.0  # expected draws of an event, and of its complement
SINGLE = 64  # words that are events of their own
FACTORS = (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
POWER = 0.9
POWERED = 3  # samples, those of most draws, of which the power is computed


@dataclass(frozen=True, slots=True)
class FitResult:
    """Result of a test of draws against a distribution.

    Attributes:
        claimed: ε.
        tests: events that were tested.
        draws: the number of draws in all.
        error: chance that draws of the distribution are called different.
        least: the smallest chance of what was seen, if the distribution is as claimed.
        worst: the event of that chance, in words.
        factor: the smallest inflation of ε that this test sees with probability 0.9; None if none
            up to 8.
        copied: the smallest share of tokens, written as they stand in the source, that this test
            sees with probability 0.9; None where it does not look for them, or sees none.
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
        """A description of the worst difference; None without a violation."""
        return self.worst if self.violation else None

    @property
    def shown(self) -> str:
        """The power, for a table."""
        if self.copied is not None:
            return f"1 copy in {1 / self.copied:,.0f}"
        return "-" if self.factor is None else f"factor {self.factor:g}"

    def as_dict(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ClaimedDraws:
    """Draws of one input at one ε, and the distribution that is claimed for the draws.

    Attributes:
        counts: (W,) how often each word came out.
        mass: (W,) its probability; or, if ``reference`` is not 0, counts of as many of the audit's
            own draws.
        order: (W,) words by falling probability, equal ones by rising distance; fixed before the
            draws.
        inflated: the mass at f·ε, by f, for the power of the test.
    """

    name: str
    counts: Ids
    mass: Floats
    order: Ids
    reference: int = 0
    inflated: Callable[[float], Floats] | None = None


def events(order: Ids, mass: Floats, n: int) -> list[Ids]:
    """Return the sets of the k likeliest words, and single words that are expected
    ``LEAST_EXPECTED_DRAWS`` times and not always.
    """
    w = len(order)
    ends = sorted(
        {2**i for i in range(w.bit_length())}
        | {w - 2**i for i in range(w.bit_length())} & set(range(1, w))
    )
    single = [order[i : i + 1] for i in range(min(SINGLE, w))]
    # What is rare is tested too: that it comes too often shows however seldom it should.
    return [order[:end] for end in ends if 0 < end < w] + [
        some
        for some in single
        if LEAST_EXPECTED_DRAWS <= n * float(mass[some].sum()) <= n - LEAST_EXPECTED_DRAWS
    ]


def distribution_audit(samples: Sequence[ClaimedDraws], epsilon: float, error: float) -> FitResult:
    """Test all samples together; ``error`` is the chance of a false alarm."""
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
            worst = f"{sample.name}: {impossible:,} draws of what the claim excludes"
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
    """Return exact two-sided p-values of counts of n draws with given shares; with reference
    samples, the p-values are conditional on the sum of both counts.
    """
    if np.any(reference):
        total = seen + np.rint(share * reference).astype(np.int64)
        share = n / (n + reference)
        n = total
    tails = np.minimum(binom.cdf(seen, n, share), binom.sf(seen - 1, n, share))
    return np.asarray(np.minimum(1.0, 2 * tails))


def _sees(tested: tuple[ClaimedDraws, int, Floats, list[Ids]], factor: float, each: float) -> bool:
    """Whether one event alone would show f·ε with probability ``POWER``, in normal
    approximation.
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
    """Test noise vectors, (n, p), whose claimed density is ∝ exp(-ε|z|) after a linear map: the
    radius, both tails of the radius, and the directions.

    The ends show a tail that is cut; no event of words is as rare.
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
        # The smallest of n uniform numbers is above x with (1 - x)^n.
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
    """Find whether outputs that must be independent are equal more or less often than if one side
    were shuffled.

    Args:
        pairs: outputs side by side, by what they are; the sides may be of other ε.
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
        # A pair shares its draws with the pairs beside it: three times the variance bounds that.
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
