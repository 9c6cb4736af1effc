"""Calibration for `lexveil calibrate`: the epsilon at which an adversary is expected to recover a
given share of words.

The epsilon depends on the model, the policy and public counts of words and bigrams, and on no text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import product

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.core.accounting.budgets import STRATEGIES, Policy
from lexveil.core.accounting.expected_recovery import WORDS_ALONE, RecoveryAt
from lexveil.core.accounting.results import Result
from lexveil.core.accounting.shares import CLASSES
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.io.artifacts.model import Model
from lexveil.readers.bands import ALL, BANDS, CONTENT
from lexveil.readers.meaning import recovery_at
from lexveil.readers.stored_curve import StoredCurve

LOG = logger(__name__)


class CalibratedRun(Result):
    """Calibrated epsilon of one mechanism and strategy, with the expected word recovery at this
    epsilon.

    Attributes:
        unit: Unit of the metric; epsilon is in 1 / this unit.
        epsilon: Calibrated epsilon; null if no epsilon gives the target.
        achieved: Expected recovery at that epsilon, for words and noise other than those of the
            search.
    """

    mechanism: str
    strategy: str
    unit: str | None
    epsilon: float | None
    why_not: str | None
    achieved: RecoveryAt | None


class Calibration(Result):
    """Epsilons of several mechanisms and strategies at which an adversary is expected to recover
    the same share of words.
    """

    recovery: float
    band: str
    model: str
    runs: list[CalibratedRun]


def calibrate(
    model: Model,
    recovery: float,
    mechanisms: Sequence[str],
    strategies: Sequence[str],
    band: str = ALL,
) -> Calibration:
    """Find the epsilon of each mechanism and strategy at which an adversary is expected to recover
    the target share of words.

    Args:
        recovery: the share of perturbed words of ``band`` that an adversary is expected to recover;
            between 0 and 1.

    Raises:
        RequestError: if a mechanism or strategy is unknown, or classes of tokens have shares of the
            budget.
        MissingArtifactError: if no run has made the embedding.
    """
    if unknown := [name for name in mechanisms if name not in MECHANISMS]:
        known = ", ".join(MECHANISMS)
        raise RequestError(
            f"{option('mechanism')} {unknown[0]}: there is no such mechanism; the mechanisms are "
            f"{known}"
        )
    if unknown := [name for name in strategies if name not in STRATEGIES]:
        raise RequestError(
            f"{option('strategy')} {unknown[0]}: expected recovery is computed for words and "
            f"collocations only; the strategies are {', '.join(STRATEGIES)}"
        )
    shares = model.configuration.release.shares
    if any(getattr(shares, name) != 1 for name in CLASSES[1:]):
        raise RequestError(
            "calibrate: recovery is not computed if classes of tokens have shares of the budget; "
            "leave lexveil.toml: release.shares out"
        )
    grid = product(mechanisms, strategies)
    runs = [_calibrated(model, mechanism, strategy, recovery, band) for mechanism, strategy in grid]
    return Calibration(recovery=recovery, band=band, model=model.name, runs=runs)


def _calibrated(
    model: Model, mechanism: str, strategy: str, target: float, band: str
) -> CalibratedRun:
    chosen = model.params.policy
    policy = Policy.of(strategy, chosen.stopwords, chosen.punctuation, chosen.oov)
    name = f"calibrate {mechanism} {strategy}"
    start = time.monotonic()

    def told(epsilon: float) -> None:
        LOG.info(f"{name}: epsilon {epsilon:.4g}, {time.monotonic() - start:.0f} s")

    curve = StoredCurve(model, mechanism, strategy, policy, told=told)
    epsilon = None
    why_not = None
    achieved = None
    try:
        epsilon = curve.epsilon_for(target, band).epsilon
    except RequestError as error:
        why_not = str(error)
    else:
        told(epsilon)
        achieved = recovery_at(curve.check(epsilon))
    return CalibratedRun(
        mechanism=mechanism,
        strategy=strategy,
        unit=MECHANISMS[mechanism].unit,
        epsilon=epsilon,
        why_not=why_not,
        achieved=achieved,
    )


def as_text(result: Calibration) -> Iterator[str]:
    """Return the calibration as lines of text for people."""
    of = "perturbed words" if result.band == ALL else f"{result.band} words"
    yield (
        "epsilon at which the stronger of two readers, one by single words and one in context, "
        f"is expected to name {result.recovery:.1%} of the {of}, in texts with the word "
        f"frequencies of model {result.model}"
    )
    names = (ALL, CONTENT, *BANDS)
    yield f"{'mechanism':<22}{'':<4}{'epsilon':>9}  " + "".join(f"{name:>20}" for name in names)
    for run in result.runs:
        start = f"{run.mechanism:<22}{run.strategy:<4}"
        if run.achieved is None or run.epsilon is None:
            yield f"{start}{'-':>9}  {run.why_not}"
            continue
        bands = [run.achieved.bands.get(name) for name in names]
        recovered = (
            "-" if band is None else _interval(band.recovered, band.low, band.high)
            for band in bands
        )
        unchanged = ("-" if band is None else f"{band.unchanged:.1%}" for band in bands)
        yield f"{start}{run.epsilon:>9.4g}  " + "".join(f"{cell:>20}" for cell in recovered)
        yield f"{'':<26}{'unchanged':>9}  " + "".join(f"{cell:>20}" for cell in unchanged)
        if not run.achieved.in_context:
            yield f"{'':<26}{WORDS_ALONE}: the model does not count which words follow each other"


def _interval(share: float, low: float, high: float) -> str:
    return f"{share:.1%} ({100 * low:.1f}-{100 * high:.1f})"
