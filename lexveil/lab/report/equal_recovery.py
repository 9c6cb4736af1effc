"""Comparison of mechanisms at equal recovery, that is, at settings where an adversary recovers the
same share of words.

Values are interpolated between the runs of a mechanism and strategy, never extrapolated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lexveil.lab.report.evaluation_values import Values
from lexveil.lab.report.formatting import NORMAL, Interval, MeanSd
from lexveil.lab.report.records import Key, RunRecovery
from lexveil.readers.bands import CONTENT


@dataclass(frozen=True, slots=True)
class Rung:
    """One run at a base epsilon, as a support point for interpolating scores over the recovered
    share of words.

    Attributes:
        recovered: share of replaced words that the adversary recovers, with its 95% interval.
        scores: mean and standard error by score.
    """

    key: Key
    recovered: Interval
    scores: Mapping[str, MeanSd]


@dataclass(frozen=True, slots=True)
class AtLevel:
    """Scores of a mechanism and strategy at one recovery level (share of words that an adversary
    recovers).

    Attributes:
        level: share of replaced words that the adversary recovers.
        epsilon: base epsilon; None if no two runs lie around the level.
        scores: scores with 95% intervals, by name; empty if ``epsilon`` is None.
        by_word, recovered: measured shares of a run that was made at the level, else None.
            ``by_word`` is the share that the unigram adversary recovers; its expected value is the
            level. ``recovered`` is the share that the Bayes-optimal adversary recovers.
    """

    mechanism: str
    strategy: str
    level: float
    epsilon: float | None
    scores: Mapping[str, Interval]
    by_word: Interval | None = None
    recovered: Interval | None = None


def rungs(
    of: Values, runs: Sequence[RunRecovery], dataset: str, names: Sequence[str]
) -> dict[tuple[str, str], list[Rung]]:
    """Group the runs at base epsilons by mechanism and strategy, each group by rising epsilon, as
    support points for interpolation.

    Args:
        of: mean scores on the data set ``dataset``.
        names: names of the scores to take.
    """
    by_mechanism: dict[tuple[str, str], list[Rung]] = {run.key[:2]: [] for run in runs}
    for run in sorted(runs, key=lambda run: run.key[2]):
        share = run.share(CONTENT, dataset=dataset)
        scores = _scores(of, run.key, names)
        if share is not None and scores and not run.key[2].is_level:
            by_mechanism[run.key[:2]].append(Rung(run.key, share, scores))
    return {which: own for which, own in by_mechanism.items() if own}


def at_level(own: Sequence[Rung], level: float) -> AtLevel:
    """Interpolate the scores of a mechanism and strategy at a recovery level, linearly between the
    first two neighbouring runs around the level; interpolate ε on a logarithmic scale.

    All runs are measured on the same documents, so their errors may be correlated. The error of an
    interpolated score is at most the mean of the errors of both runs, with the weights of the
    interpolation. The error of the recoveries is added, multiplied by the slope of the line.

    Args:
        own: runs of one mechanism and strategy by rising epsilon, at least one.
        level: share of replaced words that the adversary recovers, in [0, 1].
    """
    mechanism, strategy, _ = own[0].key
    for low, high in _around(own, level):
        rise = high.recovered.share - low.recovered.share
        part = (level - low.recovered.share) / rise if rise else 0.0
        lower = math.log(low.key[2].number)
        upper = math.log(high.key[2].number)
        epsilon = math.exp((1 - part) * lower + part * upper)
        scores = {}
        for name in low.scores.keys() & high.scores.keys():
            below = low.scores[name]
            above = high.scores[name]
            mean = (1 - part) * below.mean + part * above.mean
            slope = (above.mean - below.mean) / rise if rise else 0.0
            width = (1 - part) * low.recovered.error + part * high.recovered.error
            error = math.hypot(
                (1 - part) * (below.error or 0.0) + part * (above.error or 0.0), slope * width
            )
            scores[name] = interval(MeanSd(mean, None, error))
        return AtLevel(mechanism, strategy, level, epsilon, scores)
    return AtLevel(mechanism, strategy, level, None, {})


def made_at_levels(
    of: Values, runs: Sequence[RunRecovery], dataset: str, names: Sequence[str], band: str = CONTENT
) -> list[AtLevel]:
    """Return the scores of those runs that were calibrated to recovery levels, if a run has at
    least one of the scores ``names``.

    Args:
        of: mean scores on the data set ``dataset``.
        names: names of the scores to take.
        band: frequency band of the words to which the levels refer.
    """
    runs_at_levels = []
    for run in runs:
        mechanism, strategy, level = run.key
        scores = {name: interval(value) for name, value in _scores(of, run.key, names).items()}
        if level.is_level and scores:
            by_word, recovered = (
                run.share(band, which, dataset) for which in ("by_word", "recovered")
            )
            runs_at_levels.append(
                AtLevel(mechanism, strategy, level.share, level.epsilon, scores, by_word, recovered)
            )
    return runs_at_levels


def interval(value: MeanSd) -> Interval:
    """Return the 95% interval of a mean, cut at -1 and 1."""
    half = NORMAL * (value.error or 0.0)
    return Interval(value.mean, max(-1.0, value.mean - half), min(1.0, value.mean + half))


def _scores(of: Values, key: Key, names: Sequence[str]) -> dict[str, MeanSd]:
    return {name: of[name, key] for name in names if (name, key) in of}


def _around(own: Sequence[Rung], level: float) -> Iterator[tuple[Rung, Rung]]:
    """Yield pairs of neighbouring runs between which the recovery level lies. A run exactly at the
    level is yielded first, paired with itself.
    """
    for rung in own:
        if rung.recovered.share == level:
            yield rung, rung
    for low, high in itertools.pairwise(own):
        if (
            min(low.recovered.share, high.recovered.share)
            < level
            < max(low.recovered.share, high.recovered.share)
        ):
            yield low, high
