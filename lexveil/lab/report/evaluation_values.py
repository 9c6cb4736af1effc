"""Mean evaluation scores that the report shows, by score and run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.base.errors import CheckFailedError
from lexveil.base.levels import BaseEpsilon, noise_in
from lexveil.io.config import CLEAN
from lexveil.lab.evaluation.metrics import BY_NAME, METRICS
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE, GAIN
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.utility import LOSS, UTILITY, UTILITY_MICRO
from lexveil.lab.evaluation.scores import relative_gain
from lexveil.lab.report.formatting import NORMAL, MeanSd
from lexveil.lab.report.records import Key

DECIMALS = 9  # decimals of computed values: the last bits of a float carry no information

# Means of one data set, by score and run. The clean baseline is the run CLEAN; MAJORITY is the
# baseline that reads no text.
Values = Mapping[tuple[str, Key], MeanSd]
MAJORITY: Key = ("majority", "none", BaseEpsilon(0.0))

SCORES = tuple(score for metric in METRICS for score in metric.scores)


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """Evaluation results of one run of the grid.

    Attributes:
        record: content of the evaluation file of the run: mechanism, strategy, epsilon, the back
            ends; ``datasets`` has an entry for each metric, by data set and name of the metric.
    """

    record: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """Mechanism, strategy, and epsilon or recovery level of the run."""
        return str(self.record["mechanism"]), str(self.record["strategy"]), noise_in(self.record)

    @property
    def datasets(self) -> list[str]:
        """Names of the evaluated data sets, sorted."""
        return sorted(self.record["datasets"])

    def entry(self, dataset: str, metric: str) -> Mapping[str, Any] | None:
        """Return the recorded results of a metric on a data set; None if the metric was left out or
        not measured.
        """
        entry: Mapping[str, Any] | None = self.record["datasets"].get(dataset, {}).get(metric)
        return None if entry is None or entry["left_out"] is not None else entry

    def value(self, dataset: str, score: Score) -> MeanSd | None:
        """Return mean, standard deviation and standard error of a score on a data set; None if the
        score was left out or not measured.
        """
        entry = self.entry(dataset, score.metric)
        figures: Any = entry
        for name in score.path or ():
            figures = None if figures is None else figures.get(name)
        if entry is None or score.path is None or figures is None or figures["mean"] is None:
            return None
        mean = float(figures["mean"])
        sd = figures.get("sd")
        error = BY_NAME[score.metric].standard_error(entry, mean, sd)
        return MeanSd(mean, sd, None if error is None else round(error, DECIMALS))

    def back_end(self, name: str) -> str:
        """Return the name of the model with which a metric was computed."""
        metric = BY_NAME[name]
        return metric.only_back_end or str(self.record.get(metric.back_end) or "not recorded")


def require_same_back_ends(clean: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> None:
    """Check that all runs were evaluated with the same models.

    Raises:
        CheckFailedError: if the models differ, so that the runs cannot be compared.
    """
    for name in dict.fromkeys(metric.back_end for metric in METRICS if metric.back_end):
        used = sorted(
            {str(run.record[name]) for run in (clean, *runs) if run.record.get(name) is not None}
        )
        if len(used) > 1:
            raise CheckFailedError(
                f"artifacts/evaluation: runs were measured with {len(used)} settings of {name} "
                f"({', '.join(used)}), so they cannot be compared. Run `dvc repro --force "
                "evaluate evaluate_baseline`"
            )


def values(clean: EvaluatedRun, runs: Sequence[EvaluatedRun], dataset: str) -> Values:
    """Collect all mean scores of one data set, by score and run. The relative gain uses macro F1
    and the adaptive attacker.
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
    """Select the values of one score, by run."""
    return {key: value for (name, key), value in values_of.items() if name == score.name}


def is_learnt(clean: MeanSd, majority: MeanSd) -> bool:
    """Return whether a classifier on clean texts scores above the majority-class baseline by more
    than half a 95% interval.
    """
    return clean.mean - NORMAL * (clean.error or 0.0) > majority.mean


def averages(values_of: Mapping[str, Values], datasets: Iterable[str]) -> Values:
    """Average scores over data sets. Only values that every data set has are averaged; the averages
    have no spread.
    """
    every = [values_of[name] for name in datasets]
    common = set.intersection(*(set(candidate) for candidate in every)) if every else set()
    return {
        key: MeanSd(math.fsum(candidate[key].mean for candidate in every) / len(every), None)
        for key in common
    }


def losses(of: Values) -> Values:
    """Return the loss of micro F1 of each run, compared with clean texts."""
    base = of.get((UTILITY_MICRO.name, CLEAN))
    return {
        (LOSS.name, key): MeanSd(base.mean - value.mean, None)
        for (name, key), value in of.items()
        if name == UTILITY_MICRO.name and base is not None and key not in (CLEAN, MAJORITY)
    }


def keys_of(of: Values) -> list[Key]:
    """Return the runs that have at least one value, in the order of the values."""
    return [key for key in dict.fromkeys(key for _, key in of) if key not in (CLEAN, MAJORITY)]


def at_epsilons(of: Values) -> Values:
    """Return all values except those of runs at recovery levels."""
    return {(name, key): value for (name, key), value in of.items() if not key[2].is_level}


def one_kind(of: Values) -> Values:
    """Return the values that one line of a chart can connect: those of runs at base epsilons, or,
    if there are none, those of runs at recovery levels.
    """
    of_epsilons = at_epsilons(of)
    return of_epsilons if keys_of(of_epsilons) else of
