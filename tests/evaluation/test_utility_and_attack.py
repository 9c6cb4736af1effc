"""Utility and attacks on texts made so that the scores are known, and which documents take part."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import pytest

from lexveil.evaluation.classifier import Linear
from lexveil.evaluation.utility import LeftOut, Problem, attack, entry, problem_of, shuffles_of, utility

SPLITS = ["train"] * 12 + ["validation"] * 4
CLASSES = ["x", "y"] * 8
TOLD = [f"the word {name} tells number {i}" for i, name in enumerate(CLASSES)]  # the class can be read
MUTE = ["the word tells nothing"] * 16
SWAPPED = [text.replace(" x ", " z ").replace(" y ", " x ").replace(" z ", " y ") for text in TOLD]


class Recorder:
    """Says the class that most of what it learnt has, and keeps what it was given."""

    name: ClassVar[str] = "recorder"
    seen: ClassVar[list[tuple[int, list[str], list[str]]]] = []

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        self.seen.append((self.seed, list(texts), list(classes)))
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return ["x"] * len(texts)


def problem(**changes) -> Problem:
    found = problem_of("label", changes.get("splits", SPLITS), changes.get("classes", CLASSES), changes.get("keep"))
    assert isinstance(found, Problem)
    return found


def rngs(n: int = 3) -> list[np.random.Generator]:
    return [np.random.default_rng(i) for i in range(n)]


def accuracies(measured) -> dict[str, list[float]]:
    return {setting: [one.scores.accuracy for one in trained] for setting, trained in measured.items()}


def measured(measure, clean: list[str], private: list[str]) -> dict[str, list[float]]:
    one = problem()
    return accuracies(measure(clean, private, one, shuffles_of(one, rngs(), 1.0), Linear))


def test_utility_is_learnt_from_private_texts_and_scored_on_both() -> None:
    assert measured(utility, TOLD, TOLD) == {"private": [1.0] * 3, "clean": [1.0] * 3}
    # Nothing is learnt from mute texts, whatever the clean ones say: one class for all, half of the documents.
    assert measured(utility, TOLD, MUTE) == {"private": [0.5] * 3, "clean": [0.5] * 3}
    # Learnt from swapped texts, whose meaning is consistent: all right on the same, all wrong on clean ones.
    assert measured(utility, TOLD, SWAPPED) == {"private": [1.0] * 3, "clean": [0.0] * 3}


def test_an_entry_says_which_documents_are_right_and_by_how_many_trainings() -> None:
    """The recorder says x of all; x and y alternate."""
    one = problem()
    shuffles = shuffles_of(one, rngs(), 1.0)
    made = entry(one, shuffles, utility(TOLD, SWAPPED, one, shuffles, Recorder))
    assert made["right"] == {"private": "3 0 3 0", "clean": "3 0 3 0"}


def test_attackers_differ_by_what_they_learnt_from() -> None:
    assert measured(attack, TOLD, TOLD) == {"static": [1.0] * 3, "adaptive": [1.0] * 3}
    assert measured(attack, TOLD, MUTE) == {"static": [0.5] * 3, "adaptive": [0.5] * 3}
    # Who learnt from clean texts is misled; who knows the rewriting is not.
    assert measured(attack, TOLD, SWAPPED) == {"static": [0.0] * 3, "adaptive": [1.0] * 3}


def test_every_shuffle_has_an_order_and_a_seed_of_its_own_and_learns_from_the_train_split_only() -> None:
    Recorder.seen.clear()
    one = problem()
    shuffles = shuffles_of(one, rngs(), 1.0)
    utility(TOLD, SWAPPED, one, shuffles, Recorder)
    attack(TOLD, SWAPPED, one, shuffles, Recorder)
    assert len(Recorder.seen) == 9 and len({seed for seed, _, _ in Recorder.seen}) == 3
    for number, learnt in enumerate([SWAPPED] * 3 + [TOLD] * 3 + [SWAPPED] * 3):  # utility, static, adaptive
        seed, texts, classes = Recorder.seen[number]
        shuffle = shuffles[number % 3]
        assert seed == shuffle.seed and texts == [learnt[row] for row in shuffle.order]
        assert sorted(texts) == sorted(learnt[:12])
        assert classes == [CLASSES[learnt.index(text)] for text in texts]
    assert len({tuple(shuffle.order) for shuffle in shuffles}) == 3


@pytest.mark.parametrize(
    ("share", "kept"),
    [(1.0, {"x": 10, "y": 4, "z": 1}), (0.5, {"x": 5, "y": 2, "z": 1}), (0.01, {"x": 1, "y": 1, "z": 1})],
)
def test_a_share_of_each_class_is_learnt_from_and_no_class_is_lost(share: float, kept: dict[str, int]) -> None:
    classes = [*"xxyxxxyxzxxyxyx", "x"]
    one = problem(splits=["train"] * 15 + ["dev"], classes=classes)
    shuffles = shuffles_of(one, rngs(8), share)
    for shuffle in shuffles:
        assert len(set(shuffle.order.tolist())) == len(shuffle.order)
        assert Counter(classes[row] for row in shuffle.order) == kept
    assert len({tuple(shuffle.order) for shuffle in shuffles}) > 1
    if share == 0.5:  # chosen anew, at random: every document of x is learnt from by some, and by no more than some
        chosen = Counter(row for shuffle in shuffles_of(one, rngs(400), share) for row in shuffle.order.tolist())
        assert all(120 < chosen[row] < 280 for row in range(15) if classes[row] in "xy")  # 200 ± 8 standard deviations


def test_the_same_generators_give_the_same_shuffles() -> None:
    one, other = (shuffles_of(problem(), rngs(), 0.5) for _ in range(2))
    assert [(a.order.tolist(), a.seed) for a in one] == [(b.order.tolist(), b.seed) for b in other]


@pytest.mark.parametrize(
    ("held_out", "scored"),
    [(["test", "dev"], "dev"), (["test", "validation"], "validation"), (["test"] * 2, "test"), (["x", "test"], "test")],
)
def test_the_first_split_that_exists_is_scored(held_out: list[str], scored: str) -> None:
    splits = ["train"] * 4 + held_out
    found = problem(splits=splits, classes=CLASSES[:6])
    assert found.held_out == scored and found.train.tolist() == [0, 1, 2, 3]
    assert found.test.tolist() == [row for row in (4, 5) if splits[row] == scored]


def test_a_held_out_split_without_classes_does_not_count() -> None:
    found = problem(splits=["train"] * 2 + ["validation", "test"], classes=["x", "y", None, "x"])
    assert (found.held_out, found.test.tolist(), found.n_left_out) == ("test", [3], 0)


def test_the_most_frequent_classes_of_the_train_split_are_kept() -> None:
    """z twice, x and y once each: x is the first by name. w is most frequent in the held-out split only."""
    classes = ["z", "y", "x", "z", None, "w", "w", "y", "z"]
    found = problem(splits=["train"] * 5 + ["dev"] * 4, classes=classes, keep=2)
    assert (found.train.tolist(), found.test.tolist(), found.n_left_out) == ([0, 2, 3], [8], 5)
    assert found.of(found.train) == ["z", "x", "z"]
    assert problem(splits=["train"] * 5 + ["dev"] * 4, classes=classes).train.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("splits", "classes", "reason"),
    [
        (["train", "validation"], [None, None], "no document has a value in column label"),
        (["all", "all"], ["x", "y"], "no document with a value in column label is in split train"),
        (["train", "train", "test"], [None, None, "y"], "no document with a value in column label is in split train"),
        (["train", "train", "test"], ["x", "x", "y"], "all documents of split train have the same value"),
        (["train", "train", "other"], ["x", "y", "y"], "is in split validation, dev, test"),
        (["train", "train", "test"], ["x", "y", "z"], "no document with a known value in column label is in split"),
    ],
)
def test_a_data_set_without_a_problem_says_why(splits: list[str], classes: list[str | None], reason: str) -> None:
    found = problem_of("label", splits, classes)
    assert isinstance(found, LeftOut) and reason in found.reason


def test_entry_has_numbers_only() -> None:
    one = problem_of("label", SPLITS, ["x", "y", None, "x"] * 4)
    assert isinstance(one, Problem)
    shuffles = shuffles_of(one, rngs(2), 0.8)
    made = entry(one, shuffles, utility(TOLD, MUTE, one, shuffles, Recorder))
    # 12 documents to learn from and 4 to score, a quarter without a class; x is 6 of 9, and 2 of 3.
    counts = {"n_train": 9, "n_learnt": 7, "n_test": 3, "n_classes": 2, "n_left_out": 4}
    assert {key: made[key] for key in counts} == counts
    assert (made["left_out"], made["held_out"]) == (None, "validation")
    assert made["majority"] == {"accuracy": 0.666666667, "micro_f1": 0.666666667, "macro_f1": 0.4}
    assert set(made["scores"]) == {"private", "clean"}
    assert made["scores"]["clean"]["macro_f1"] == {"mean": 0.4, "sd": 0.0, "each": [0.4, 0.4]}
