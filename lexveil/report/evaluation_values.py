"""The means of the evaluation that the report shows, by measure and run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.errors import CheckFailed
from lexveil.evaluation.scores import relative_gain
from lexveil.report.formatting import MeanSd

METRIC = "macro_f1"
DIGITS = 9  # of what is computed here: the last bits of a float are no result

Key = tuple[str, str, float]
CLEAN: Key = ("none", "none", 0.0)

# Means of one data set, by measure and run; the clean baseline is the run CLEAN, and MAJORITY looks at no text.
Values = Mapping[tuple[str, Key], MeanSd]
MAJORITY: Key = ("majority", "none", 0.0)


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a run.

    Attributes:
        name: in Values.
        words: what a row calls it.
        part: which entry of a data set's record it is in.
        path: where in that entry its mean and deviation stand.
        published: what published.csv calls the same.
    """

    name: str
    words: str
    part: str
    path: tuple[str, ...]
    published: tuple[str, ...] = ()


def _score(part: str, setting: str, metric: str, words: str, *published: str) -> Measure:
    return Measure(f"{part}_{setting}_{metric}", words, part, ("scores", setting, metric), published)


UTILITY = _score("utility", "private", "macro_f1", "utility F1", "utility_macro_f1")
UTILITY_MICRO = _score("utility", "private", "micro_f1", "utility", "utility_micro_f1", "utility_accuracy")
ON_CLEAN = _score("utility", "clean", "macro_f1", "utility on clean texts")
ON_CLEAN_MICRO = _score("utility", "clean", "micro_f1", "utility on clean texts", "utility_clean_accuracy")
STATIC = _score("attack", "static", "macro_f1", "static F1", "attack_static_macro_f1")
ADAPTIVE = _score("attack", "adaptive", "macro_f1", "adaptive F1", "attack_adaptive_macro_f1")
STATIC_ACCURACY = _score("attack", "static", "accuracy", "static accuracy", "attack_static_accuracy")
COSINE = Measure("cosine", "cosine", "similarity", (), ("cosine",))
PERPLEXITY = Measure("perplexity", "perplexity", "perplexity", (), ("perplexity",))
MEMBERSHIP = Measure("membership_auc", "AUC", "membership", ("auc",), ("membership_auc",))
# Computed from the others.
GAIN = Measure("relative_gain", "relative gain", "", (), ("relative_gain",))
LOSS = Measure("utility_loss", "utility loss", "utility", ())

MEASURES = (
    UTILITY,
    UTILITY_MICRO,
    ON_CLEAN,
    ON_CLEAN_MICRO,
    STATIC,
    ADAPTIVE,
    STATIC_ACCURACY,
    COSINE,
    PERPLEXITY,
    MEMBERSHIP,
)
PARTS = {
    "utility": "utility",
    "attack": "attack",
    "similarity": "cosine similarity",
    "perplexity": "perplexity",
    "membership": "membership inference",
}
TARGET = {"utility": "Label", "attack": "Attribute"}
BACK_END = {
    "utility": "classifier",
    "attack": "classifier",
    "similarity": "encoder",
    "perplexity": "language_model",
}
_ALWAYS = {"membership": "linear"}  # whatever evaluation.classifier is


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """What was measured of one run.

    Attributes:
        record: mechanism, strategy, epsilon, the back ends; datasets: an entry for each measure, by name.
    """

    record: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """What names the run."""
        return str(self.record["mechanism"]), str(self.record["strategy"]), float(self.record["epsilon"])

    @property
    def datasets(self) -> list[str]:
        """The data sets, by name."""
        return sorted(self.record["datasets"])

    def entry(self, dataset: str, part: str) -> Mapping[str, Any] | None:
        """What is said of one measure in one data set; None where it is left out or was not measured."""
        found: Mapping[str, Any] | None = self.record["datasets"].get(dataset, {}).get(part)
        return None if found is None or found["left_out"] is not None else found

    def value(self, dataset: str, measure: Measure) -> MeanSd | None:
        """Mean, deviation and standard error; None where it is left out or was not measured."""
        entry = self.entry(dataset, measure.part)
        found: Any = entry
        for name in measure.path:
            found = None if found is None else found.get(name)
        if entry is None or found is None or found["mean"] is None:
            return None
        mean, sd = float(found["mean"]), found.get("sd")
        error = _standard_error(measure.part, entry, mean, sd)
        return MeanSd(mean, sd, None if error is None else round(error, DIGITS))

    def back_end(self, part: str) -> str:
        """The model a measure was made with."""
        return _ALWAYS.get(part) or str(self.record.get(BACK_END[part]) or "not recorded")


def _standard_error(part: str, entry: Mapping[str, Any], mean: float, sd: float | None) -> float | None:
    """Of a mean. Trainings and the number of documents that are asked about both make a score uncertain."""
    if part in TARGET:
        return math.hypot(sd or 0.0, math.sqrt(mean * (1 - mean) / entry["n_test"]))
    if part == "membership":
        return math.hypot(sd or 0.0, entry.get("standard_error") or 0.0)
    if part == "similarity" and sd is not None and entry["n_compared"]:
        return float(sd / math.sqrt(entry["n_compared"]))
    return None


def require_same_back_ends(clean: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> None:
    """See that all runs were measured with the same models.

    Raises:
        CheckFailed: if they were not, and so cannot be compared.
    """
    for name in dict.fromkeys(BACK_END.values()):
        used = sorted({str(one.record[name]) for one in (clean, *runs) if one.record.get(name) is not None})
        if len(used) > 1:
            raise CheckFailed(
                f"artifacts/evaluation: runs were measured with {len(used)} settings of {name} ({', '.join(used)}), so "
                "they cannot be compared. Run `dvc repro --force evaluate evaluate_baseline`"
            )


def relative_gains(clean: EvaluatedRun, evaluated: Sequence[EvaluatedRun]) -> dict[tuple[str, Key], float | None]:
    """Relative gain of macro F1 against the adaptive attacker, by data set and run, where both scores are known."""
    gains = {}
    for dataset in both_scored(clean):
        scores = [(one, one.value(dataset, UTILITY), one.value(dataset, ADAPTIVE)) for one in (clean, *evaluated)]
        (_, utility_clean, attack_clean), *rewritten = scores
        for one, utility, attack in rewritten:
            if utility and attack and utility_clean and attack_clean:
                gains[dataset, one.key] = relative_gain(
                    utility.mean, utility_clean.mean, attack.mean, attack_clean.mean
                )
    return gains


def values(
    clean: EvaluatedRun, runs: Sequence[EvaluatedRun], dataset: str, gains: Mapping[tuple[str, Key], float | None]
) -> Values:
    """Everything known of one data set.

    Args:
        gains: relative gain by data set and run.
    """
    found: dict[tuple[str, Key], MeanSd] = {}
    for measure in MEASURES:
        for run in (clean, *runs):
            value = run.value(dataset, measure)
            if value is not None:
                found[measure.name, run.key] = value
        entry = clean.entry(dataset, measure.part)
        if entry is not None and measure.part in TARGET and measure.path[-1] in entry["majority"]:
            found[measure.name, MAJORITY] = MeanSd(entry["majority"][measure.path[-1]], None)
    for run in runs:
        gain = gains.get((dataset, run.key))
        if gain is not None:
            found[GAIN.name, run.key] = MeanSd(gain, None)
    return found


def both_scored(clean: EvaluatedRun) -> list[str]:
    """The data sets of which utility and attack are known."""
    return [name for name in clean.datasets if clean.entry(name, "utility") is not None and clean.entry(name, "attack")]


def averages(values_of: Mapping[str, Values], datasets: Iterable[str]) -> Values:
    """Means over data sets, of what is known in each of them, without a spread."""
    every = [values_of[name] for name in datasets]
    common = set.intersection(*(set(one) for one in every)) if every else set()
    return {key: MeanSd(math.fsum(one[key].mean for one in every) / len(every), None) for key in common}


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
