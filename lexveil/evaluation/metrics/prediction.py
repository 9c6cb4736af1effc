"""Classification of documents: the base of utility and attack."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lexveil.evaluation.metrics.base import DatasetTexts, Entry, Metric, Score, Settings
from lexveil.evaluation.registry import CLASSIFIERS
from lexveil.evaluation.scores import NAMES, half_width
from lexveil.evaluation.text_quality import STREAM
from lexveil.evaluation.utility import LeftOut, Scorer, entry, problem_of, shuffles_of


def classifier_score(metric: str, setting: str, measure: str, words: str, **shown: Any) -> Score:
    """Accuracy or an F1 of a metric in one of its settings."""
    return Score(
        name=f"{metric}_{setting}_{measure}",
        metric=metric,
        words=words,
        path=("scores", setting, measure),
        **shown,
    )


class PredictionMetric(Metric):
    """How well classes of documents are predicted.

    Attributes:
        target: the column that is predicted.
    """

    target: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    back_end = "classifier"
    limits = (0.0, 1.0)
    same = ("left_out", "held_out", "n_train", "n_learnt", "n_test", "n_classes", "n_left_out", "majority")
    trained = True

    @property
    @abstractmethod
    def scorer(self) -> Scorer:
        """What trains and scores classifiers."""

    def max_classes(self, settings: Settings) -> int | None:  # noqa: ARG002
        """How many of the most frequent classes are kept; None for all."""
        return None

    def compute(self, texts: DatasetTexts) -> Entry:
        """Train one classifier per shuffle in every setting, and score it on the held-out split."""
        settings = texts.settings
        problem = problem_of(self.target, texts.column("split"), texts.column(self.target), self.max_classes(settings))
        if isinstance(problem, LeftOut):
            return {"left_out": problem.reason}
        names = [(STREAM, texts.dataset, self.target, str(number)) for number in range(settings.shuffles)]
        shuffles = shuffles_of(problem, [texts.stream(*name) for name in names], settings.train_share)
        make = CLASSIFIERS[settings.classifier].maker(settings)
        return entry(problem, shuffles, self.scorer(*texts.classified, problem, shuffles, make))

    def values(self, entry: Entry, setting: str | None) -> list[tuple[float | None, Sequence[float] | None]]:
        """Accuracy and both F1."""
        by_name = entry["scores"].get(setting)
        return [(by_name[name]["mean"], by_name[name]["each"]) for name in NAMES] if by_name else []

    def summary(self, entry: Entry) -> str:
        """Macro F1 in every setting."""
        scores = ", ".join(f"{setting} {score['macro_f1']['mean']:.3f}" for setting, score in entry["scores"].items())
        return f"macro F1 {scores}; majority {entry['majority']['macro_f1']:.3f}"

    def note(self, entry: Mapping[str, Any]) -> str:
        """How many classes and documents."""
        n_test, target = entry["n_test"], self.target.capitalize()
        note = (
            f"{target}: {entry['n_classes']:,} classes, learnt from {entry['n_learnt']:,} of {entry['n_train']:,} "
            f"documents of split train, scored on {n_test:,} of split {entry['held_out']}. From that many a share of "
            f"one half is known to ± {half_width(n_test):.2f} (95%)."
        )
        if entry["n_left_out"]:
            why = f"their {self.target} is unknown or rare"
            note += f" {entry['n_left_out']:,} documents of these splits are left out: {why}."
        return note

    def standard_error(self, entry: Mapping[str, Any], mean: float, sd: float | None) -> float | None:
        """Trainings and the number of evaluated documents both make a score uncertain."""
        return math.hypot(sd or 0.0, math.sqrt(mean * (1 - mean) / entry["n_test"]))

    def majority(self, entry: Mapping[str, Any], score: Score) -> float | None:
        """The score of always predicting the most frequent class."""
        majority: Mapping[str, float] = entry["majority"]
        return majority.get(score.path[-1]) if score.path else None
