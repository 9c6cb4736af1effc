"""Exact audits: compare a mechanism's output distribution, or proven bounds on it, with the privacy
claim, without sampling.

A claim is a number of nats for every ordered pair of inputs: ln Pr[M(a) in E] - ln Pr[M(b) in E]
must not exceed it for any event E. For a mechanism on words it is ε·d(a, b).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import gammaln

from lexveil.auditing.distributions import Distances
from lexveil.base.types import Floats, Ids

# (n,) ids -> (n, W) natural logarithms of the output probabilities of each input.
LogPmf = Callable[[Ids], Floats]

RELATIVE = 1e-9  # a loss may exceed its claim by this share, because distances and ε are rounded
# bound on rounding errors, relative to the logarithms that are subtracted
ROUNDING = 256 * 2.0**-52
INPUTS_AT_A_TIME = 32  # inputs per block of comparisons


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Result of an exact audit, which evaluates a closed form or proven bounds.

    Attributes:
        claimed: the ε of the claim.
        audited: the largest |ln P(y|w) - ln P(y|w')| / d(w, w'), or a lower bound on it if only
            bounds are known; infinite if words at distance 0 have different distributions, or if an
            output is possible for only one of two words.
        pair: ids of the two words with the largest loss; output: the id of y.
        n_pairs: number of pairs of different words that were compared.
        violation: whether a loss exceeds ε·d by more than ``RELATIVE`` and rounding.
        method: "exact" if the distribution is known; "bounds" if the loss is proven to be at least
            ``audited``.
    """

    claimed: float
    audited: float
    pair: tuple[int, int] | None
    output: int | None
    n_pairs: int
    violation: bool
    method: str = "exact"

    detail = None

    @property
    def shown(self) -> str:
        """The audited privacy loss as the text of a table cell."""
        at_least = "> " if self.method == "bounds" and self.audited else ""
        return f"{at_least}{self.audited:.4g}"

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values for JSON."""
        return {**asdict(self), "relative_tolerance": RELATIVE}


def exact_audit(log_pmf: LogPmf, ids: Ids, distances: Distances, epsilon: float) -> ExactResult:
    """Compare the output distributions of all pairs of the inputs ``ids`` with the privacy claim,
    in blocks.

    Args:
        log_pmf: function that returns the logarithms of the distributions, (n, W), of (n,) ids.
        ids: (n,) the words to compare with each other.
        distances: the metric of the claim.
        epsilon: the claim, in 1 / units of the metric.

    Raises:
        ValueError: if a row is not a distribution: it contains NaN, or does not sum to 1 within
            1e-6.
    """
    audited = 0.0
    is_violated = False
    pair = None
    output = None
    n_pairs = 0
    for start in range(0, len(ids), INPUTS_AT_A_TIME):
        first = ids[start : start + INPUTS_AT_A_TIME]
        left = _pmf_rows(log_pmf, first)
        for begin in range(start, len(ids), INPUTS_AT_A_TIME):
            second = ids[begin : begin + INPUTS_AT_A_TIME]
            right = left if begin == start else _pmf_rows(log_pmf, second)
            claim = epsilon * distances(first, second)
            size = max(_largest(left), _largest(right))
            for i in range(len(first)):
                others = slice(i + 1, None) if begin == start else slice(None)
                allowed = claim[i, others]
                if not len(allowed):
                    continue
                with np.errstate(invalid="ignore"):
                    loss = np.abs(right[others] - left[i])
                loss[np.isnan(loss)] = 0.0  # the output is impossible for both words
                at = loss.argmax(axis=1)
                most = loss[np.arange(len(at)), at]
                ratio, over = _compared(most, allowed, size, epsilon)
                is_violated |= over
                worst = int(ratio.argmax())
                n_pairs += len(allowed)
                if ratio[worst] > audited:
                    audited = float(ratio[worst])
                    output = int(at[worst])
                    pair = (int(first[i]), int(second[others][worst]))
    return ExactResult(epsilon, audited, pair, output, n_pairs, is_violated)


def bounds_audit(
    stays: Floats, reached: Floats, ids: Ids, distances: Distances, epsilon: float
) -> ExactResult:
    """Audit a privacy claim by proven bounds on the probabilities, for a distribution without a
    closed form. Sampling would not find events of probability e^-100.

    Args:
        stays: (n,) lower bounds on ln Pr[M(w) = w].
        reached: (n, n) upper bounds on ln Pr[M(w') = w], rows w', columns w.
        ids: (n,) the words.
        distances: the metric of the claim.
        epsilon: the claim, in 1 / units of the metric.
    """
    if len(ids) < 2:
        return ExactResult(
            claimed=epsilon,
            audited=0.0,
            pair=None,
            output=None,
            n_pairs=0,
            violation=False,
            method="bounds",
        )
    allowed = epsilon * distances(ids, ids).T
    loss = np.maximum(stays[None, :] - reached, 0.0)
    np.fill_diagonal(loss, 0.0)
    ratio, is_violated = _compared(loss, allowed, _largest(reached), epsilon)
    other, word = np.unravel_index(int(ratio.argmax()), ratio.shape)
    pair = (int(ids[word]), int(ids[other]))
    n_pairs = len(ids) * (len(ids) - 1) // 2
    audited = float(ratio[other, word])
    return ExactResult(epsilon, audited, pair, pair[0], n_pairs, is_violated, "bounds")


def _compared(loss: Floats, allowed: Floats, size: float, epsilon: float) -> tuple[Floats, bool]:
    """Return ε · loss / allowed for each loss, and whether some loss exceeds the claim by more than
    rounding can explain.
    """
    slack = RELATIVE * allowed + ROUNDING * (1 + size)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(allowed > 0, epsilon * loss / allowed, np.where(loss > slack, np.inf, 0.0))
    return ratio, bool((loss - allowed > slack).any())


def _pmf_rows(log_pmf: LogPmf, ids: Ids) -> Floats:
    log_p = np.asarray(log_pmf(ids), dtype=np.float64)
    total = np.exp(log_p).sum(axis=1)
    if not (np.abs(total - 1) < 1e-6).all():
        raise ValueError(
            f"the probabilities of one input sum to {total[np.abs(total - 1).argmax()]:.9g}, "
            "not to 1"
        )
    return log_p


def _largest(logarithms: Floats) -> float:
    finite = logarithms[np.isfinite(logarithms)]
    return float(np.abs(finite).max(initial=0.0))


def gumbel_bounds(size: int, ids: Ids, distances: Distances) -> tuple[Floats, Floats]:
    """Return probability bounds for the truncated Gumbel mechanism. They depend only on the number
    k of neighbours, so they hold for every scale of the noise.

    Args:
        size: W, the number of words.
        ids: (n,) the words.
        distances: the Euclidean metric.

    Returns:
        ln Pr[k = 1], (n,): if k is 1, the output is the word itself; and ln Pr[k > number of words
        nearer to w' than w], (n, n): otherwise w cannot be the output of w'.
    """
    k = np.arange(1, size + 1)
    sizes = k * np.log(np.log(size)) - gammaln(k + 1)
    sizes -= np.logaddexp.reduce(sizes)
    at_least = np.logaddexp.accumulate(sizes[::-1])[::-1]
    every = np.arange(size, dtype=np.int64)
    reached = np.empty((len(ids), len(ids)))
    for i in range(len(ids)):
        row = distances(ids[i : i + 1], every)[0]
        reached[i] = at_least[np.searchsorted(np.sort(row), row[ids], side="left")]
    return np.full(len(ids), sizes[0]), reached
