"""Sampled audits: compare lower confidence bounds on a mechanism's largest privacy loss with its
claim.

A sampled audit reports losses that are all below the true losses, with the stated confidence over
all of its comparisons at once. So a mechanism that satisfies its claim is flagged with probability
at most 1 - confidence. A sampled audit does not promise to find a violation. A pass means that no
compared event shows a violation at this sample size; ``power`` states the losses that would have
been detected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, binom, norm

from lexveil.auditing.exact import RELATIVE
from lexveil.base.types import Flags, Floats, Ids

COMPARISONS = 32
POWERED = (0.5, 0.1, 0.01)  # probabilities of an event, for which the power is computed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two inputs a and b by the output event that distinguishes a from b best.

    Attributes:
        inputs: (a, b), numbers of inputs.
        allowed: the claim, in nats.
        loss: lower confidence bound on ln Pr[M(a) in E] - ln Pr[M(b) in E], in nats.
        seen: how often E occurred under a and under b in the test samples.
        event_size: number of outputs in E.
    """

    inputs: tuple[int, int]
    allowed: float
    loss: float
    seen: tuple[int, int]
    event_size: int


@dataclass(frozen=True, slots=True)
class SampledResult:
    """Result of a sampled audit.

    Attributes:
        claimed: the ε of the claim.
        audited: lower confidence bound on the largest ε · loss / allowed, at least 0; infinite if a
            loss is proven for a pair whose claim is 0.
        confidence: probability that all bounds hold together.
        comparisons: number of bounds computed on the test samples; the correction counts all of
            them.
        samples: test samples per input; as many other samples per input chose the pairs and events.
        worst: the comparison with the largest ratio; None if there was nothing to compare.
        violation: whether some bound exceeds the claim.
        power: for each of three probabilities of an event, the smallest true loss in nats that is
            detected with probability 0.9 or more if the claim is 1 nat; None if no loss is
            detected.
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
        """The proven privacy loss as the text of a table cell."""
        return f"> {self.audited:.4g}" if self.audited else "0"

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values."""
        return asdict(self)


def sampled_audit(
    draws: Sequence[Ids],
    allowed: Floats,
    epsilon: float,
    confidence: float,
    comparisons: int = COMPARISONS,
) -> SampledResult:
    """Return lower confidence bounds on the privacy loss between pairs of inputs, from sampled
    outputs. Half of the samples choose the events, and the other half bound the losses.

    A quarter of the samples orders the outputs by their likelihood ratio for every ordered pair of
    inputs. Another quarter chooses among the sets of the k first outputs and the single outputs;
    the most promising pairs are kept. The other half is used only afterwards, for the verdict. Each
    comparison is one ordered pair with one fixed event. Clopper and Pearson's intervals bound its
    probability from below for a and from above for b, each with error (1 - confidence) / (2 ·
    comparisons). By the union bound all bounds hold together with the requested confidence, however
    their counts depend on each other.

    Args:
        draws: codes >= 0 of independent outputs of each of the k inputs; each input has the same
            number of outputs, at least 40.
        allowed: (k, k) the claim in nats for each ordered pair of inputs; infinite for a pair
            without a claim.
        epsilon: the ε of the claim, for the report.
        confidence: probability that all bounds hold together.
        comparisons: largest number of pairs that are compared on the test samples.
    """
    samples = min(map(len, draws))
    quarter = samples // 4
    half = samples - 2 * quarter
    order, choose = _counts(draws, quarter)
    comparisons = min(comparisons, int(_claimed(allowed).sum()))
    if not comparisons:
        power = dict.fromkeys(map(str, POWERED))
        return SampledResult(
            claimed=epsilon,
            audited=0.0,
            confidence=confidence,
            comparisons=0,
            samples=half,
            worst=None,
            violation=False,
            power=power,
        )
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
    worst = max(bounds, key=_ratio)
    audited = max(0.0, epsilon * _ratio(worst))
    violation = any(bound.loss > bound.allowed * (1 + RELATIVE) for bound in bounds)
    power = {str(share): power_at(1.0, share, half, comparisons, confidence) for share in POWERED}
    return SampledResult(epsilon, audited, confidence, comparisons, half, worst, violation, power)


def _counts(draws: Sequence[Ids], quarter: int) -> tuple[Ids, Ids]:
    """Return how often each output occurs for each input, (k, W), in the first quarter of the
    samples, and the same counts for the second quarter.
    """
    width = 1 + max(int(codes[: 2 * quarter].max()) for codes in draws)
    first, second = (
        [np.bincount(codes[start : start + quarter], minlength=width) for codes in draws]
        for start in (0, quarter)
    )
    return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)


def _ratio(bound: Comparison) -> float:
    """Return the proven loss divided by the claimed loss."""
    if bound.allowed > 0:
        return bound.loss / bound.allowed
    return math.inf if bound.loss > 0 else -math.inf


def _claimed(allowed: Floats) -> npt.NDArray[np.bool_]:
    """Return a (k, k) mask of the ordered pairs of different inputs that have a claim."""
    return np.isfinite(allowed) & ~np.eye(len(allowed), dtype=bool)


def _select(
    first: Ids, second: Ids, allowed: Floats, z: float, scale: float, comparisons: int
) -> tuple[list[tuple[int, int]], list[Ids]]:
    """Select the ordered pairs of inputs with the largest estimated loss relative to the claim, and
    the best event of every input against every other.
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
    # Ties are broken by position, so the choice depends only on the first half of the samples.
    promising = np.argsort(-promise, axis=None, kind="stable")[:comparisons]
    return [(int(place) // k, int(place) % k) for place in promising], chosen


def _best_events(first: Ids, second: Ids, a: int, z: float, scale: float) -> tuple[Floats, Ids]:
    """Return, for input a against every input b, the loss bound that the best event is estimated to
    give, and the code of this event.

    The code c >= 0 denotes the set of the c + 1 outputs with the largest ratio; -1 - y denotes the
    single output y.
    """
    ranked = _ranked(first, a)
    mine = np.take_along_axis(np.broadcast_to(second[a], second.shape), ranked, axis=1).cumsum(
        axis=1
    )
    theirs = np.take_along_axis(second, ranked, axis=1).cumsum(axis=1)
    sets = _promised(mine * scale, theirs * scale, z)
    single = _promised(second[a] * scale, second * scale, z)
    set_at = sets.argmax(axis=1)
    single_at = single.argmax(axis=1)
    rows = np.arange(len(second))
    set_best = sets[rows, set_at]
    single_best = single[rows, single_at]
    wins = set_best >= single_best
    return np.where(wins, set_best, single_best), np.where(wins, set_at, -1 - single_at).astype(
        np.int64
    )


def _ranked(first: Ids, a: int) -> Ids:
    """Return, for each input b, the outputs by falling likelihood ratio Pr[output | a] / Pr[output
    | b], (k, outputs). Outputs with equal ratios are ordered by number.
    """
    return np.argsort(-(first[a] + 0.5) / (first + 0.5), axis=1, kind="stable").astype(np.int64)


def _promised(mine: npt.NDArray[Any], theirs: npt.NDArray[Any], z: float) -> Floats:
    """Return a quick approximation of the loss bound of each event (score interval of Poisson
    counts). It serves to choose events; the verdict does not use it.
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
    """Count how often an event occurred in the test samples. An output that did not occur in the
    samples for the choice belongs to no event.
    """
    return int(event[codes[codes < len(event)]].sum())


def loss_bound(seen_a: int, seen_b: int, n_a: int, n_b: int, error: float) -> float:
    """Return a lower bound on ln Pr[E|a] - ln Pr[E|b] with confidence 1 - 2·error, from counts of E
    in n_a and n_b draws.

    The bounds are Clopper-Pearson, from below for a and from above for b: their coverage is exact
    for all probabilities, including 0.
    """
    if seen_a == 0:
        return -np.inf
    low = float(beta.ppf(error, seen_a, n_a - seen_a + 1))
    high = float(beta.isf(error, seen_b + 1, n_b - seen_b)) if seen_b < n_b else 1.0
    return float(np.log(low) - np.log(high))


def power_at(
    allowed: float, share: float, samples: int, comparisons: int, confidence: float
) -> float | None:
    """Return the smallest true loss (nats) that a comparison detects with probability 0.9 or more.

    Args:
        allowed: the claim, in nats.
        share: Pr[E|a] of the event; the loss fixes Pr[E|b].
        samples: test samples of each input.
        comparisons: number of comparisons that the correction counts.
        confidence: probability that all bounds hold together.

    Returns:
        None if no loss would be detected, not even Pr[E|b] = 0.
    """
    error = (1 - confidence) / (2 * comparisons)
    seen = int(binom.ppf(0.05, samples, share))
    if loss_bound(seen, 0, samples, samples, error) <= allowed:
        return None
    # the largest count under b at which the bound still exceeds the claim
    few = 0
    many = samples + 1
    while many - few > 1:
        middle = (few + many) // 2
        if loss_bound(seen, middle, samples, samples, error) > allowed:
            few = middle
        else:
            many = middle
    # The largest Pr[E|b] that gives at most that count with probability 0.95.
    return float(np.log(share) - np.log(beta.ppf(0.05, few + 1, samples - few)))
