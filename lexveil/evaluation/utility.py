"""Utility and empirical privacy of rewritten texts, in the manner of CLMLDP (Tables 3 and 4) and TEM.

Utility is how well the label of a document is predicted after training on rewritten texts. Empirical privacy is how
well the attribute (the author, say) is predicted: by a *static* attacker, trained on clean texts, and by an *adaptive*
one, trained on texts that were rewritten the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexveil.evaluation.base import Classifier
from lexveil.evaluation.ngrams import take
from lexveil.evaluation.scores import DIGITS, NAMES, ClassificationScores, majority, score, spread
from lexveil.types import Flags, Rows


class Trained(NamedTuple):
    """What one training scores, and (b,) whether each of the scored documents is right."""

    scores: ClassificationScores
    right: Flags


Measured = dict[str, list[Trained]]

TRAIN = "train"
HELD_OUT = ("validation", "dev", "test")  # the first that a data set has is scored

# Which scores there are: on which texts, or by which attacker.
SETTINGS = {"utility": ("private", "clean"), "attack": ("static", "adaptive")}


@dataclass(frozen=True, slots=True)
class Problem:
    """Which documents a classifier is trained on, and which it is evaluated on.

    Attributes:
        classes: (n,) class of every document of the data set, None where it has none.
        train: (a,) rows to learn from, ascending; of at least two classes.
        test: (b,) rows to be scored, ascending; b > 0.
        held_out: the split that ``test`` is from.
        n_left_out: documents of both splits that have no class, or one that is not kept.
    """

    classes: Sequence[str | None]
    train: Rows
    test: Rows
    held_out: str
    n_left_out: int

    def of(self, rows: Rows) -> list[str]:
        """The classes of ``rows``, each of which has one."""
        return [str(self.classes[row]) for row in rows.tolist()]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A data set of which there is nothing to predict, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Shuffle:
    """One training.

    Attributes:
        order: (m,) rows of ``Problem.train`` to learn from, in this order.
        seed: of the classifier.
    """

    order: Rows
    seed: int


Scorer = Callable[
    [Sequence[str], Sequence[str], Problem, Sequence[Shuffle], Callable[[int], Classifier]], Measured
]  # clean texts, rewritten ones, what is predicted, the trainings, and what makes a classifier from a seed


def problem_of(
    target: str, splits: Sequence[str], classes: Sequence[str | None], max_classes: int | None = None
) -> Problem | LeftOut:
    """The problem that a data set poses, or why there is none.

    Args:
        target: what ``classes`` are, for the reason: label or attribute.
        splits: (n,) train, validation, ...
        classes: (n,) class of each document, or None.
        max_classes: keep this many of the most frequent classes of the train split, of equally frequent ones the first
            by name; None keeps all.
    """
    rows = range(len(classes))
    if all(one is None for one in classes):
        return LeftOut(f"no document has a value in column {target}")
    counts = Counter(str(classes[row]) for row in rows if splits[row] == TRAIN and classes[row] is not None)
    kept = set(sorted(counts, key=lambda name: (-counts[name], name))[:max_classes])
    usable = [row for row in rows if classes[row] in kept]
    train = [row for row in usable if splits[row] == TRAIN]
    held_out = next((name for name in HELD_OUT if any(splits[row] == name for row in usable)), None)
    if not train:
        return LeftOut(f"no document with a value in column {target} is in split {TRAIN}")
    if len(kept) < 2:
        return LeftOut(f"all documents of split {TRAIN} have the same value in column {target}")
    if held_out is None:
        return LeftOut(f"no document with a known value in column {target} is in split {', '.join(HELD_OUT)}")
    test = [row for row in usable if splits[row] == held_out]
    n_both = sum(split in (TRAIN, held_out) for split in splits)
    return Problem(
        classes,
        np.array(train, dtype=np.int64),
        np.array(test, dtype=np.int64),
        held_out,
        n_both - len(train) - len(test),
    )


def shuffles_of(problem: Problem, rngs: Sequence[np.random.Generator], share: float) -> list[Shuffle]:
    """One training for each generator: an order of a part of the train split, and a seed.

    Args:
        share: of the documents of each class to learn from, in (0, 1], rounded, at least one; below 1 the trainings
            differ even where order and seed do not matter, so that their spread tells what the documents do.
    """
    codes = np.unique(problem.of(problem.train), return_inverse=True)[1]
    counts = np.bincount(codes)
    keep = np.maximum(1, np.rint(share * counts)).astype(np.int64)
    shuffles = []
    for rng in rngs:
        order = rng.permutation(len(codes))
        # Place of each document among those of its class, in this order.
        by_class = np.argsort(codes[order], kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[by_class] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        learnt = order[place < keep[codes[order]]]
        shuffles.append(Shuffle(problem.train[learnt], int(rng.integers(2**31))))
    return shuffles


def utility(
    clean: Sequence[str],
    private: Sequence[str],
    problem: Problem,
    shuffles: Sequence[Shuffle],
    make: Callable[[int], Classifier],
) -> Measured:
    """Train on rewritten texts; evaluate on rewritten ones (as CLMLDP and 1-Diffractor do) and on clean ones (as TEM).

    Args:
        clean: (n,) texts as they were given, by row of ``problem``.
        private: (n,) the same, rewritten.
        make: builds a classifier from a seed.

    Returns:
        One entry per shuffle for each of SETTINGS["utility"].
    """
    return _trained(private, {"private": private, "clean": clean}, problem, shuffles, make)


def attack(
    clean: Sequence[str],
    private: Sequence[str],
    problem: Problem,
    shuffles: Sequence[Shuffle],
    make: Callable[[int], Classifier],
) -> Measured:
    """Attack rewritten texts after training on clean ones (static) or on rewritten ones (adaptive).

    Arguments and return value are those of ``utility``, for SETTINGS["attack"].
    """
    return _trained(clean, {"static": private}, problem, shuffles, make) | _trained(
        private, {"adaptive": private}, problem, shuffles, make
    )


def _trained(
    learnt: Sequence[str],
    asked: Mapping[str, Sequence[str]],
    problem: Problem,
    shuffles: Sequence[Shuffle],
    make: Callable[[int], Classifier],
) -> Measured:
    truth = problem.of(problem.test)
    measured: Measured = {setting: [] for setting in asked}
    for shuffle in shuffles:
        model = make(shuffle.seed).fit(take(learnt, shuffle.order), problem.of(shuffle.order))
        for setting, texts in asked.items():
            predicted = model.predict(take(texts, problem.test))
            right = np.array([said == true for said, true in zip(predicted, truth, strict=True)], dtype=np.bool_)
            measured[setting].append(Trained(score(truth, predicted), right))
    return measured


def entry(problem: Problem, shuffles: Sequence[Shuffle], measured: Measured) -> dict[str, object]:
    """What is written of one problem, as JSON values: numbers of documents and scores, no class and no text.

    ``right`` says of each scored document by how many trainings it is right, in order, so that runs on the same
    documents can be compared document by document; one text of numbers, because a list is a line for each.
    """
    base = majority(problem.of(problem.train), problem.of(problem.test))
    return {
        "left_out": None,
        "held_out": problem.held_out,
        "n_train": len(problem.train),
        "n_learnt": len(shuffles[0].order),
        "n_test": len(problem.test),
        "n_classes": len(set(problem.of(problem.train))),
        "n_left_out": problem.n_left_out,
        "majority": {name: round(getattr(base, name), DIGITS) for name in NAMES},
        "scores": {setting: spread([one.scores for one in trained]) for setting, trained in measured.items()},
        "right": {
            setting: " ".join(map(str, np.sum([one.right for one in trained], axis=0).tolist()))
            for setting, trained in measured.items()
        },
    }
