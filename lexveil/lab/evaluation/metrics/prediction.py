"""Classification of documents, which the metrics utility and attack have in common, as in CLMLDP
(Tables 3 and 4) and TEM.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lexveil.base.types import Flags, Rows
from lexveil.core.language_models.base import Classifier
from lexveil.lab.evaluation.metrics.base import (
    STREAM,
    DatasetTexts,
    Entry,
    EvaluationSettings,
    LeftOut,
    Metric,
    Score,
)
from lexveil.lab.evaluation.ngrams import take
from lexveil.lab.evaluation.registry import CLASSIFIERS
from lexveil.lab.evaluation.scores import (
    DECIMALS,
    NAMES,
    ClassificationScores,
    half_width,
    majority,
    score,
    spread,
)

TRAIN = "train"
# Scoring uses the first of these splits that a data set has.
HELD_OUT = ("validation", "dev", "test")

# Training texts and scored texts, by metric and setting. Utility is scored on rewritten texts, as
# in CLMLDP and 1-Diffractor, and on clean texts, as in TEM.
SETTINGS = {
    "utility": {"private": ("private", "private"), "clean": ("private", "clean")},
    "attack": {"static": ("clean", "private"), "adaptive": ("private", "private")},
}


class TrainingScores(NamedTuple):
    """Scores of one trained classifier, and flags (b,) of the scored documents that it predicts
    correctly.
    """

    scores: ClassificationScores
    right: Flags


Measured = dict[str, list[TrainingScores]]


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Order of the training documents and seed of one training.

    Attributes:
        order: (m,) rows of ``Problem.train`` to train on, in this order.
        seed: seed of the classifier.
    """

    order: Rows
    seed: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Classification problem: documents on which a classifier is trained, and documents on which it
    is evaluated.

    Attributes:
        classes: (n,) class of every document of the data set, None for a document without a class.
        train: (a,) rows to train on, ascending; they have at least two classes.
        test: (b,) rows to be scored, ascending; b > 0.
        held_out: the split of ``test``.
        n_left_out: number of documents of both splits that have no class, or a class that is not
            used.
    """

    classes: Sequence[str | None]
    train: Rows
    test: Rows
    held_out: str
    n_left_out: int

    def of(self, rows: Rows) -> list[str]:
        """Return the class of each document in ``rows``; each of these documents must have a
        class.
        """
        return [str(self.classes[row]) for row in rows.tolist()]

    def shuffles(self, rngs: Sequence[np.random.Generator], share: float) -> list[Shuffle]:
        """Draw one training for each generator: a shuffled part of the train split, and a seed.

        Args:
            share: share of the documents of each class to train on, in (0, 1], rounded, at least
                one document. Below 1, the trainings differ even if order and seed do not matter, so
                that their spread shows the influence of the documents.
        """
        codes = np.unique(self.of(self.train), return_inverse=True)[1]
        counts = np.bincount(codes)
        keep = np.maximum(1, np.rint(share * counts)).astype(np.int64)
        shuffles = []
        for rng in rngs:
            order = rng.permutation(len(codes))
            # Rank of each document among the documents of its class, in this order.
            by_class = np.argsort(codes[order], kind="stable")
            place = np.empty(len(order), dtype=np.int64)
            place[by_class] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
            learnt = order[place < keep[codes[order]]]
            shuffles.append(Shuffle(self.train[learnt], int(rng.integers(2**31))))
        return shuffles

    def train_and_score(
        self,
        learnt: Sequence[str],
        scored: Mapping[str, Sequence[str]],
        shuffles: Sequence[Shuffle],
        make: Callable[[int], Classifier],
    ) -> Measured:
        """Train one classifier for each shuffle, and score it on the texts of every setting of
        ``scored``.

        Args:
            learnt: (n,) training texts, by row of the problem.
            scored: (n,) scored texts, by setting.
            shuffles: order and seed of each training.
            make: builds a classifier from a seed.
        """
        truth = self.of(self.test)
        measured: Measured = {setting: [] for setting in scored}
        for shuffle in shuffles:
            model = make(shuffle.seed).fit(take(learnt, shuffle.order), self.of(shuffle.order))
            for setting, texts in scored.items():
                predicted = model.predict(take(texts, self.test))
                right = np.array(
                    [guess == true for guess, true in zip(predicted, truth, strict=True)],
                    dtype=np.bool_,
                )
                measured[setting].append(TrainingScores(score(truth, predicted), right))
        return measured

    def entry(self, shuffles: Sequence[Shuffle], measured: Measured) -> Entry:
        """Summarize the measured scores of one data set as JSON values: numbers of documents and
        scores, no class names and no texts.

        ``right`` holds for each scored document, in order, the number of trainings that classify it
        correctly, so that runs on the same documents can be compared document by document. It is
        one string of numbers, because a JSON list would take a line for each number.
        """
        base = majority(self.of(self.train), self.of(self.test))
        n_right = {
            setting: np.sum([training.right for training in trained], axis=0)
            for setting, trained in measured.items()
        }
        return {
            "left_out": None,
            "held_out": self.held_out,
            "n_train": len(self.train),
            "n_learnt": len(shuffles[0].order),
            "n_test": len(self.test),
            "n_classes": len(set(self.of(self.train))),
            "n_left_out": self.n_left_out,
            "majority": {name: round(getattr(base, name), DECIMALS) for name in NAMES},
            "scores": {
                setting: spread([training.scores for training in trained])
                for setting, trained in measured.items()
            },
            "right": {
                setting: " ".join(map(str, counts.tolist())) for setting, counts in n_right.items()
            },
        }


def problem_of(
    target: str,
    splits: Sequence[str],
    classes: Sequence[str | None],
    max_classes: int | None = None,
) -> Problem | LeftOut:
    """Build the classification problem of a data set, or return the reason why there is none.

    Args:
        target: name of the column of ``classes``, for the reason: label or attribute.
        splits: (n,) train, validation, ...
        classes: (n,) class of each document, or None.
        max_classes: use only so many classes, the most frequent of the train split, ties by name;
            None uses all.
    """
    rows = range(len(classes))
    if all(name is None for name in classes):
        return LeftOut(f"no document has a value in column {target}")
    counts = Counter(
        str(classes[row]) for row in rows if splits[row] == TRAIN and classes[row] is not None
    )
    largest_classes = set(sorted(counts, key=lambda name: (-counts[name], name))[:max_classes])
    usable = [row for row in rows if classes[row] in largest_classes]
    train = [row for row in usable if splits[row] == TRAIN]
    held_out = next((name for name in HELD_OUT if any(splits[row] == name for row in usable)), None)
    if not train:
        return LeftOut(f"no document with a value in column {target} is in split {TRAIN}")
    if len(largest_classes) < 2:
        return LeftOut(f"all documents of split {TRAIN} have the same value in column {target}")
    if held_out is None:
        return LeftOut(
            f"no document with a known value in column {target} is in split {', '.join(HELD_OUT)}"
        )
    test = [row for row in usable if splits[row] == held_out]
    n_left_out = sum(split in (TRAIN, held_out) for split in splits) - len(train) - len(test)
    return Problem(
        classes,
        np.array(train, dtype=np.int64),
        np.array(test, dtype=np.int64),
        held_out,
        n_left_out,
    )


def classifier_score(metric: str, setting: str, measure: str, words: str, **shown: Any) -> Score:
    """Describe the accuracy or an F1 score of a metric in one of its settings, for the report."""
    name = f"{metric}_{setting}_{measure}"
    path = ("scores", setting, measure)
    return Score(name=name, metric=metric, words=words, path=path, **shown)


class PredictionMetric(Metric):
    """Base class of metrics that measure how well the classes of documents are predicted from their
    texts.

    Attributes:
        target: the column that is predicted.
    """

    target: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]
    back_end = "classifier"
    limits = (0.0, 1.0)
    same = (
        "left_out",
        "held_out",
        "n_train",
        "n_learnt",
        "n_test",
        "n_classes",
        "n_left_out",
        "majority",
    )
    trained = True

    def max_classes(self, settings: EvaluationSettings) -> int | None:  # noqa: ARG002
        """Return how many of the most frequent classes are used; None uses all classes."""
        return None

    def compute(self, texts: DatasetTexts) -> Entry:
        """Train one classifier per shuffle in every setting, and score the classifier on the
        held-out split.
        """
        settings = texts.settings
        problem = problem_of(
            self.target,
            texts.column("split"),
            texts.column(self.target),
            self.max_classes(settings),
        )
        if isinstance(problem, LeftOut):
            return {"left_out": problem.reason}
        names = [
            (STREAM, texts.dataset, self.target, str(number)) for number in range(settings.shuffles)
        ]
        shuffles = problem.shuffles([texts.stream(*name) for name in names], settings.train_share)
        make = CLASSIFIERS[settings.classifier].maker(settings)
        by_name = dict(zip(("clean", "private"), texts.classified, strict=True))
        measured: Measured = {}
        pairs = SETTINGS[self.name]
        for trained_on in dict.fromkeys(name for name, _ in pairs.values()):
            scored = {
                setting: by_name[name]
                for setting, (own, name) in pairs.items()
                if own == trained_on
            }
            measured |= problem.train_and_score(by_name[trained_on], scored, shuffles, make)
        return problem.entry(shuffles, measured)

    def values(
        self, entry: Entry, setting: str | None
    ) -> list[tuple[float | None, Sequence[float] | None]]:
        """Return accuracy, micro F1 and macro F1 in one setting."""
        by_name = entry["scores"].get(setting)
        return [(by_name[name]["mean"], by_name[name]["each"]) for name in NAMES] if by_name else []

    def summary(self, entry: Entry) -> str:
        """Return the macro F1 of every setting as one line."""
        scores = ", ".join(
            f"{setting} {score['macro_f1']['mean']:.3f}"
            for setting, score in entry["scores"].items()
        )
        return f"macro F1 {scores}; majority {entry['majority']['macro_f1']:.3f}"

    def note(self, entry: Mapping[str, Any]) -> str:
        """Return the note below a table of this metric: numbers of classes and documents."""
        n_test = entry["n_test"]
        target = self.target.capitalize()
        note = (
            f"{target}: {entry['n_classes']:,} classes, learnt from {entry['n_learnt']:,} of "
            f"{entry['n_train']:,} documents of split train, scored on {n_test:,} of split "
            f"{entry['held_out']}. With so many documents, a share of one half is known to ± "
            f"{half_width(n_test):.2f} (95%)."
        )
        if entry["n_left_out"]:
            why = f"their {self.target} is unknown or rare"
            note += f" {entry['n_left_out']:,} documents of these splits are left out: {why}."
        return note

    def standard_error(
        self, entry: Mapping[str, Any], mean: float, sd: float | None
    ) -> float | None:
        """Return the standard error of a score, from the spread over trainings and the number of
        evaluated documents.
        """
        return math.hypot(sd or 0.0, math.sqrt(mean * (1 - mean) / entry["n_test"]))

    def majority(self, entry: Mapping[str, Any], score: Score) -> float | None:
        """Return the score of a baseline that always predicts the most frequent class."""
        majority: Mapping[str, float] = entry["majority"]
        return majority.get(score.path[-1]) if score.path else None
