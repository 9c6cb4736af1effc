"""The means of the evaluation that the report shows, by score and run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.config import CLEAN
from lexveil.errors import CheckFailed
from lexveil.evaluation.metrics import BY_NAME, METRICS
from lexveil.evaluation.metrics.attack import ADAPTIVE, GAIN
from lexveil.evaluation.metrics.base import Score
from lexveil.evaluation.metrics.utility import LOSS, UTILITY, UTILITY_MICRO
from lexveil.evaluation.scores import relative_gain
from lexveil.levels import Level, epsilon_in
from lexveil.report.formatting import NORMAL, MeanSd
from lexveil.report.records import Key

DIGITS = 9  # of what is computed here: the last bits of a float are no result

# Means of one data set, by score and run; the clean baseline is the run CLEAN, and MAJORITY looks
# at no text.
Values = Mapping[tuple[str, Key], MeanSd]
MAJORITY: Key = ("majority", "none", 0.0)

SCORES = tuple(score for metric in METRICS for score in metric.scores)


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """What was measured of one run.

    Attributes:
        record: mechanism, strategy, epsilon, the back ends; datasets: an entry for each metric, by
            name.
    """

    record: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """What names the run."""
        return str(self.record["mechanism"]), str(self.record["strategy"]), epsilon_in(self.record)

    @property
    def datasets(self) -> list[str]:
        """The data sets, by name."""
        return sorted(self.record["datasets"])

    def entry(self, dataset: str, metric: str) -> Mapping[str, Any] | None:
        """The record of one metric in one data set; None where it is left out or was not
        measured.
        """
        entry: Mapping[str, Any] | None = self.record["datasets"].get(dataset, {}).get(metric)
        return None if entry is None or entry["left_out"] is not None else entry

    def value(self, dataset: str, score: Score) -> MeanSd | None:
        """Mean, deviation and standard error; None where it is left out or was not measured."""
        entry = self.entry(dataset, score.metric)
        figures: Any = entry
        for name in score.path or ():
            figures = None if figures is None else figures.get(name)
        if entry is None or score.path is None or figures is None or figures["mean"] is None:
            return None
        mean, sd = float(figures["mean"]), figures.get("sd")
        error = BY_NAME[score.metric].standard_error(entry, mean, sd)
        return MeanSd(mean, sd, None if error is None else round(error, DIGITS))

    def back_end(self, name: str) -> str:
        """The model a metric was computed with."""
        metric = BY_NAME[name]
        return metric.only_back_end or str(self.record.get(metric.back_end) or "not recorded")


def require_same_back_ends(clean: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> None:
    """See that all runs were measured with the same models.

    Raises:
        CheckFailed: if they were not, and so cannot be compared.
    """
    for name in dict.fromkeys(metric.back_end for metric in METRICS if metric.back_end):
        used = sorted(
            {str(run.record[name]) for run in (clean, *runs) if run.record.get(name) is not None}
        )
        if len(used) > 1:
            raise CheckFailed(
                f"artifacts/evaluation: runs were measured with {len(used)} settings of "
                f"{name} ({', '.join(used)}), so "
                "they cannot be compared. Run `dvc repro --force evaluate evaluate_baseline`"
            )


def values(clean: EvaluatedRun, runs: Sequence[EvaluatedRun], dataset: str) -> Values:
    """Everything known of one data set; the relative gain is of macro F1 against the adaptive
    attacker.
    """
    means: dict[tuple[str, Key], MeanSd] = {}
    for score in SCORES:
        for run in (clean, *runs):
            if (value := run.value(dataset, score)) is not None:
                means[score.name, run.key] = value
        entry = clean.entry(dataset, score.metric)
        majority = None if entry is None else BY_NAME[score.metric].majority(entry, score)
        if majority is not None:
            means[score.name, MAJORITY] = MeanSd(majority, None)
    for run in runs:
        four = [
            means.get((score.name, key))
            for score in (UTILITY, ADAPTIVE)
            for key in (run.key, CLEAN)
        ]
        known = [value.mean for value in four if value is not None]
        gain = relative_gain(*known) if len(known) == len(four) else None
        if gain is not None:
            means[GAIN.name, run.key] = MeanSd(gain, None)
    return means


def of_score(values_of: Values, score: Score) -> dict[Key, MeanSd]:
    """What is known of one score, by run."""
    return {key: value for (name, key), value in values_of.items() if name == score.name}


def is_learnt(clean: MeanSd, majority: MeanSd) -> bool:
    """Whether clean texts are above the majority by half of a 95% interval."""
    return clean.mean - NORMAL * (clean.error or 0.0) > majority.mean


def averages(values_of: Mapping[str, Values], datasets: Iterable[str]) -> Values:
    """Means over data sets, of what is known in each of them, without a spread."""
    every = [values_of[name] for name in datasets]
    common = set.intersection(*(set(candidate) for candidate in every)) if every else set()
    return {
        key: MeanSd(math.fsum(candidate[key].mean for candidate in every) / len(every), None)
        for key in common
    }


def losses(of: Values) -> Values:
    """What a run costs in micro F1, against clean texts."""
    base = of.get((UTILITY_MICRO.name, CLEAN))
    return {
        (LOSS.name, key): MeanSd(base.mean - value.mean, None)
        for (name, key), value in of.items()
        if name == UTILITY_MICRO.name and base is not None and key not in (CLEAN, MAJORITY)
    }


def keys_of(of: Values) -> list[Key]:
    """The runs that something is known of, by mechanism as they came, strategy and epsilon."""
    return [key for key in dict.fromkeys(key for _, key in of) if key not in (CLEAN, MAJORITY)]


def at_epsilons(of: Values) -> Values:
    """What is known of the runs at base epsilons, of clean texts and of the majority; without runs
    at levels.
    """
    return {
        (name, key): value for (name, key), value in of.items() if not isinstance(key[2], Level)
    }


def one_kind(of: Values) -> Values:
    """What one line can go through: the runs at base epsilons, or those at levels where there are
    no others.
    """
    of_epsilons = at_epsilons(of)
    return of_epsilons if keys_of(of_epsilons) else of
