"""Sampled audits: lower confidence bounds of the largest privacy loss against the claim.

What the sampled audit promises: with the stated confidence every loss it reports is below the true
one, over all of its comparisons at once, so a mechanism that keeps its claim is flagged with
probability at most 1 - confidence. What it does not: that a violation is found. A pass says that no
event among those looked for shows one at this sample size; ``power`` says which losses would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom, norm

from lexveil.auditing.exact import RELATIVE
from lexveil.types import Flags, Floats, Ids

COMPARISONS = 32
POWERED = (0.5, 0.1, 0.01)  # shares of an event, of which the power is computed


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison: the event that tells input a from input b best, and how much it tells for
    certain.

    Attributes:
        inputs: (a, b), numbers of inputs.
        allowed: the claim, in nats.
        loss: lower confidence bound of ln Pr[M(a) in E] - ln Pr[M(b) in E], in nats.
        seen: how often E was seen under a and under b in the test samples.
        event_size: number of outputs in E.
    """

    inputs: tuple[int, int]
    allowed: float
    loss: float
    seen: tuple[int, int]
    event_size: int


@dataclass(frozen=True, slots=True)
class SampledResult:
    """The audit of samples.

    Attributes:
        claimed: the ε of the claim.
        audited: lower confidence bound of the largest ε · loss / allowed, at least 0; infinite if a
            loss is proven where none is allowed.
        confidence: that all bounds hold together.
        comparisons: bounds that were computed on the test samples; the correction counts all of
            them.
        samples: test samples per input; as many again per input, before them, chose pairs and
            events.
        worst: the comparison of the largest ratio; None if there was nothing to compare.
        violation: whether some bound exceeds what is allowed.
        power: for three shares of an event, the smallest true loss in nats that is caught with
            probability 0.9 or more where 1 nat is allowed; None if no loss is.
    """

    claimed: float
    audited: float
    confidence: float
    comparisons: int
    samples: int
    worst: Comparison | None
    violation: bool
    power: dict[str, float | None]

    method: str = "sampled"

    detail = None

    @property
    def shown(self) -> str:
        """The loss that is proven, for a table."""
        return f"> {self.audited:.4g}" if self.audited else "0"

    def as_dict(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def sampled_audit(
    draws: Sequence[Ids],
    allowed: Floats,
    epsilon: float,
    confidence: float,
    comparisons: int = COMPARISONS,
) -> SampledResult:
    """Look for the events that tell inputs apart best, then bound the loss they show on fresh
    samples.

    A quarter of the samples orders the outputs by their likelihood ratio for every ordered pair of
    inputs; another quarter chooses among the sets of the k first outputs and the single outputs;
    the pairs that promise most are kept. Only then is the other half looked at. It decides nothing
    but the verdict: each comparison is one pair in one order with one fixed event, bounded by
    Clopper and Pearson from below for a and from above for b, each with error (1 - confidence) / (2
    · comparisons). By the union bound all bounds hold together with the confidence asked for,
    however their counts depend on each other.

    Args:
        draws: codes >= 0 of independent outputs of each of the k inputs, equally many of each, at
            least 40.
        allowed: (k, k) the claim in nats for each ordered pair of inputs; infinite where nothing is
            claimed.
        epsilon: what the claim is called in the report.
    """
    samples = min(map(len, draws))
    quarter = samples // 4
    half = samples - 2 * quarter
    counts = [
        [np.bincount(codes[start : start + quarter]) for codes in draws] for start in (0, quarter)
    ]
    width = max(len(row) for rows in counts for row in rows)
    order, choose = (
        np.array([np.pad(row, (0, width - len(row))) for row in rows], dtype=np.int64)
        for rows in counts
    )
    comparisons = min(comparisons, int(_claimed(allowed).sum()))
    if not comparisons:
        power = dict.fromkeys(map(str, POWERED))
        return SampledResult(epsilon, 0.0, confidence, 0, half, None, False, power)
    error = (1 - confidence) / (2 * comparisons)
    pairs, chosen = _select(
        order, choose, allowed, float(norm.isf(error)), half / quarter, comparisons
    )
    tested = [codes[2 * quarter : 2 * quarter + half] for codes in draws]
    bounds = []
    for a, b in pairs:
        event = _event(order, a, b, int(chosen[a][b]))
        seen = (_seen(tested[a], event), _seen(tested[b], event))
        loss = loss_bound(seen[0], seen[1], half, half, error)
        bounds.append(Comparison((a, b), float(allowed[a, b]), loss, seen, int(event.sum())))

    def ratio(bound: Comparison) -> float:
        return (
            bound.loss / bound.allowed
            if bound.allowed > 0
            else np.inf
            if bound.loss > 0
            else -np.inf
        )

    worst = max(bounds, key=ratio)
    audited = max(0.0, epsilon * ratio(worst))
    violation = any(bound.loss > bound.allowed * (1 + RELATIVE) for bound in bounds)
    power = {str(share): power_at(1.0, share, half, comparisons, confidence) for share in POWERED}
    return SampledResult(epsilon, audited, confidence, comparisons, half, worst, violation, power)


def _claimed(allowed: Floats) -> npt.NDArray[np.bool_]:
    """Which ordered pairs of different inputs something is claimed of, (k, k)."""
    return np.isfinite(allowed) & ~np.eye(len(allowed), dtype=bool)


def _select(
    first: Ids, second: Ids, allowed: Floats, z: float, scale: float, comparisons: int
) -> tuple[list[tuple[int, int]], list[Ids]]:
    """The ordered pairs that promise the largest share of what is allowed, and for every input its
    best events.
    """
    k = len(allowed)
    promise = np.full((k, k), -np.inf)
    chosen: list[Ids] = []
    for a in range(k):
        best, kind = _best_events(first, second, a, z, scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            promise[a] = np.where(
                allowed[a] > 0, best / allowed[a], np.where(best > 0, np.inf, best * 1e300)
            )
        chosen.append(kind)
    promise[~_claimed(allowed) | np.isnan(promise)] = -np.inf
    # Ties are broken by position, so the choice depends on the first half of the samples alone.
    kept = np.argsort(-promise, axis=None, kind="stable")[:comparisons]
    return [(int(place) // k, int(place) % k) for place in kept], chosen


def _best_events(first: Ids, second: Ids, a: int, z: float, scale: float) -> tuple[Floats, Ids]:
    """For input a against every b: the loss bound that the best event promises, and that event's
    code.

    Code c >= 0 is the set of the c + 1 outputs of largest ratio, -1 - y the single output y.
    """
    ranked = _ranked(first, a)
    mine = np.take_along_axis(np.broadcast_to(second[a], second.shape), ranked, axis=1).cumsum(
        axis=1
    )
    theirs = np.take_along_axis(second, ranked, axis=1).cumsum(axis=1)
    sets = _promised(mine * scale, theirs * scale, z)
    single = _promised(second[a] * scale, second * scale, z)
    set_at, single_at = sets.argmax(axis=1), single.argmax(axis=1)
    rows = np.arange(len(second))
    set_best, single_best = sets[rows, set_at], single[rows, single_at]
    wins = set_best >= single_best
    return np.where(wins, set_best, single_best), np.where(wins, set_at, -1 - single_at).astype(
        np.int64
    )


def _ranked(first: Ids, a: int) -> Ids:
    """(k, outputs) outputs by falling likelihood ratio of a to each input b; equal ones by
    number.
    """
    return np.argsort(-(first[a] + 0.5) / (first + 0.5), axis=1, kind="stable").astype(np.int64)


def _promised(mine: npt.NDArray[Any], theirs: npt.NDArray[Any], z: float) -> Floats:
    """A quick stand-in for the bound (score interval of Poisson counts); it only chooses, it never
    judges.
    """
    shift = z * z / 2
    low = mine + shift - z * np.sqrt(mine + shift / 2)
    high = theirs + shift + z * np.sqrt(theirs + shift / 2)
    return np.asarray(np.log(np.maximum(low, 1e-300)) - np.log(high), dtype=np.float64)


def _event(first: Ids, a: int, b: int, code: int) -> Flags:
    event = np.zeros(first.shape[1], dtype=bool)
    if code < 0:
        event[-1 - code] = True
    else:
        event[_ranked(first[[a, b]], 0)[1, : code + 1]] = True
    return event


def _seen(codes: Ids, event: Flags) -> int:
    """How often the event was seen; an output that was not seen before is in no event."""
    return int(event[codes[codes < len(event)]].sum())


def loss_bound(seen_a: int, seen_b: int, n_a: int, n_b: int, error: float) -> float:
    """Lower bound of ln Pr[E|a] - ln Pr[E|b] with confidence 1 - 2·error, from counts of E in n_a
    and n_b draws.

    Clopper-Pearson from below for a and from above for b: exact coverage whatever the
    probabilities, 0 included.
    """
    if seen_a == 0:
        return -np.inf
    low = float(beta.ppf(error, seen_a, n_a - seen_a + 1))
    high = float(beta.isf(error, seen_b + 1, n_b - seen_b)) if seen_b < n_b else 1.0
    return float(np.log(low) - np.log(high))


def power_at(
    allowed: float, share: float, samples: int, comparisons: int, confidence: float
) -> float | None:
    """The smallest true loss (nats) that a comparison catches with probability 0.9 or more.

    Args:
        allowed: the claim, in nats.
        share: Pr[E|a] of the event; the loss fixes Pr[E|b].
        samples: test samples of each input.

    Returns:
        None if no loss would be caught, not even Pr[E|b] = 0.
    """
    error = (1 - confidence) / (2 * comparisons)
    seen = int(binom.ppf(0.05, samples, share))
    if loss_bound(seen, 0, samples, samples, error) <= allowed:
        return None
    # the largest count under b at which the bound still exceeds the claim
    few, many = 0, samples + 1
    while many - few > 1:
        middle = (few + many) // 2
        if loss_bound(seen, middle, samples, samples, error) > allowed:
            few = middle
        else:
            many = middle
    # The largest Pr[E|b] that gives at most that count with probability 0.95.
    return float(np.log(share) - np.log(beta.ppf(0.05, few + 1, samples - few)))
