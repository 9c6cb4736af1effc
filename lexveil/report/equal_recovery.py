"""Runs compared where a reader gets back equally much: between the rungs of each, never beyond them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lexveil.levels import Level
from lexveil.recovery.bands import BANDS_OF, CONTENT
from lexveil.recovery.shares import Share
from lexveil.report.evaluation_values import Key, Values
from lexveil.report.formatting import Interval, MeanSd
from lexveil.report.records import RunRecovery

NORMAL = 1.96  # half of a 95% interval, in standard errors


@dataclass(frozen=True, slots=True)
class Rung:
    """One run of a mechanism and strategy on one data set.

    Attributes:
        recovered: share of replaced words that the reader gets back, with its 95% interval.
        scores: mean and standard error by score.
    """

    key: Key
    recovered: Interval
    scores: Mapping[str, MeanSd]


@dataclass(frozen=True, slots=True)
class AtLevel:
    """What a mechanism and strategy give where so much is recovered.

    Attributes:
        level: the share of replaced words that is recovered.
        epsilon: base epsilon; None if no two rungs lie around the level.
        scores: with 95% intervals, by score; empty if there is no epsilon.
    """

    mechanism: str
    strategy: str
    level: float
    epsilon: float | None
    scores: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class MadeAt:
    """A run at a level of recovery, on one data set.

    Attributes:
        at: the level, the epsilon that was found for it, and the scores of the run with their intervals.
        recovered: share of the replaced words of the level's band that the best-informed reader got back.
        by_word: the same of the reader by the word, of whom the level is expected.
    """

    at: AtLevel
    recovered: Interval | None
    by_word: Interval | None


def recovered(run: RunRecovery, dataset: str, band: str = CONTENT, which: str = "recovered") -> Interval | None:
    """The share of the replaced words of a band that the reader gets back; None where none was replaced.

    Args:
        band: content: all bands but that of the function words, which S1 keeps and the others replace.
        which: the reader, as of ``RunRecovery.share``.
    """
    if band != CONTENT:
        return run.share(band, which, dataset) if run.n_words(band, dataset) else None
    shares = [(run.n_words(one, dataset), run.share(one, which, dataset)) for one in BANDS_OF[band]]
    n = sum(words for words, found in shares if found is not None)
    found = Share.of(round(sum(words * found.share for words, found in shares if found is not None)), n)
    return Interval(found.share, found.low, found.high) if n else None


def rungs(
    of: Values, runs: Sequence[RunRecovery], dataset: str, names: Sequence[str], band: str = CONTENT
) -> dict[tuple[str, str], list[Rung]]:
    """The runs of each mechanism and strategy at base epsilons, by rising epsilon.

    Args:
        of: means of this data set.
        names: scores to take.
    """
    found: dict[tuple[str, str], list[Rung]] = {}
    runs = [run for run in runs if not isinstance(run.key[2], Level)]
    for run in sorted(runs, key=lambda run: run.key[2]):
        share = recovered(run, dataset, band)
        scores = {name: of[name, run.key] for name in names if (name, run.key) in of}
        if share is not None and scores:
            found.setdefault(run.key[:2], []).append(Rung(run.key, share, scores))
    order = list(dict.fromkeys(run.key[:2] for run in runs))
    return {which: found[which] for which in order if which in found}


def at_level(own: Sequence[Rung], level: float) -> AtLevel:
    """What is between the first two neighbouring rungs around a level, by straight lines; of ε, of its logarithm.

    The rungs are of the same documents, so their errors may go together: the error in between is at most the mean of
    both, weighted as they are. The error of the recoveries adds what the line makes of it.

    Args:
        own: rungs of one mechanism and strategy by rising epsilon, at least one.
    """
    mechanism, strategy, _ = own[0].key
    for low, high in _around(own, level):
        rise = high.recovered.share - low.recovered.share
        part = (level - low.recovered.share) / rise if rise else 0.0
        epsilon = math.exp((1 - part) * math.log(low.key[2]) + part * math.log(high.key[2]))
        scores = {}
        for name in low.scores.keys() & high.scores.keys():
            below, above = low.scores[name], high.scores[name]
            mean = (1 - part) * below.mean + part * above.mean
            slope = (above.mean - below.mean) / rise if rise else 0.0
            width = (1 - part) * _width(low.recovered) + part * _width(high.recovered)
            error = math.hypot((1 - part) * (below.error or 0.0) + part * (above.error or 0.0), slope * width)
            scores[name] = interval(MeanSd(mean, None, error))
        return AtLevel(mechanism, strategy, level, epsilon, scores)
    return AtLevel(mechanism, strategy, level, None, {})


def made_at_levels(
    of: Values, runs: Sequence[RunRecovery], dataset: str, names: Sequence[str], band: str = CONTENT
) -> list[MadeAt]:
    """The runs at levels of recovery that have one of some scores.

    Args:
        of: means of this data set.
        names: scores to take.
        band: that the levels are of.
    """
    found = []
    for run in runs:
        mechanism, strategy, level = run.key
        scores = {name: interval(of[name, run.key]) for name in names if (name, run.key) in of}
        if isinstance(level, Level) and scores:
            at = AtLevel(mechanism, strategy, level.share, level.epsilon, scores)
            reads = (recovered(run, dataset, band, which) for which in ("recovered", "by_word"))
            found.append(MadeAt(at, *reads))
    return found


def interval(value: MeanSd) -> Interval:
    """A mean of what is at most 1 with its 95% interval."""
    half = NORMAL * (value.error or 0.0)
    return Interval(value.mean, max(-1.0, value.mean - half), min(1.0, value.mean + half))


def _around(own: Sequence[Rung], level: float) -> Iterator[tuple[Rung, Rung]]:
    """Neighbouring rungs between which a level lies; a rung that has it exactly, twice."""
    for rung in own:
        if rung.recovered.share == level:
            yield rung, rung
    for low, high in itertools.pairwise(own):
        if min(low.recovered.share, high.recovered.share) < level < max(low.recovered.share, high.recovered.share):
            yield low, high


def _width(share: Interval) -> float:
    """The standard error of a share."""
    return (share.high - share.low) / (2 * NORMAL)
