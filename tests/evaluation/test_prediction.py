"""Utility and attacks on texts made so that the scores are known, and which documents take part."""

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from lexveil.lab.evaluation.classifier import Linear
from lexveil.lab.evaluation.metrics.base import LeftOut
from lexveil.lab.evaluation.metrics.prediction import SETTINGS, Problem, problem_of
from lexveil.lab.evaluation.scores import ClassificationScores, majority, relative_gain, score

SPLITS = ["train"] * 12 + ["validation"] * 4
CLASSES = ["x", "y"] * 8
# the class can be read
TOLD = [f"the word {name} tells number {i}" for i, name in enumerate(CLASSES)]
MUTE = ["the word tells nothing"] * 16
SWAPPED = [text.replace(" x ", " z ").replace(" y ", " x ").replace(" z ", " y ") for text in TOLD]


class Recorder:
    """Predicts x for every text, and keeps what it was given."""

    name: ClassVar[str] = "recorder"
    seen: ClassVar[list[tuple[int, list[str], list[str]]]] = []

    def __init__(self, seed):
        self.seed = seed

    def fit(self, texts, classes):
        self.seen.append((self.seed, list(texts), list(classes)))
        return self

    def predict(self, texts):
        return ["x"] * len(texts)


def problem(splits=SPLITS, classes=CLASSES, keep=None):
    found = problem_of("label", splits, classes, keep)
    assert isinstance(found, Problem)
    return found


def rngs(n=3):
    return [np.random.default_rng(i) for i in range(n)]


def measure(metric, private, shuffles, make, of):
    """Measure as the metric does, with the classifier and the shuffles of the test."""
    measured = {}
    texts = {"clean": TOLD, "private": private}
    for setting, (trained_on, scored) in SETTINGS[metric].items():
        measured |= of.train_and_score(texts[trained_on], {setting: texts[scored]}, shuffles, make)
    return measured


@pytest.mark.parametrize(
    ("metric", "private", "accuracy"),
    [
        ("utility", TOLD, {"private": 1.0, "clean": 1.0}),
        # Nothing is learnt from mute texts, whatever the clean ones say: one class for all, half of
        # the documents.
        ("utility", MUTE, {"private": 0.5, "clean": 0.5}),
        # Trained on swapped texts, whose meaning is consistent: all right on the same, all wrong on
        # clean ones.
        ("utility", SWAPPED, {"private": 1.0, "clean": 0.0}),
        ("attack", TOLD, {"static": 1.0, "adaptive": 1.0}),
        ("attack", MUTE, {"static": 0.5, "adaptive": 0.5}),
        # Who was trained on clean texts is misled; who knows the rewriting is not.
        ("attack", SWAPPED, {"static": 0.0, "adaptive": 1.0}),
    ],
)
def test_what_is_trained_on_decides_what_is_right(metric, private, accuracy):
    measured = measure(metric, private, problem().shuffles(rngs(), 1.0), Linear, problem())
    assert {
        setting: [one.scores.accuracy for one in trained] for setting, trained in measured.items()
    } == {setting: [share] * 3 for setting, share in accuracy.items()}


def test_every_shuffle_has_an_order_and_a_seed_of_its_own_and_learns_from_train_only():
    Recorder.seen.clear()
    shuffles = problem().shuffles(rngs(), 1.0)
    for metric in ("utility", "attack"):
        measure(metric, SWAPPED, shuffles, Recorder, problem())
    assert len(Recorder.seen) == 12 and len({seed for seed, _, _ in Recorder.seen}) == 3
    # utility twice, static, adaptive
    for number, learnt in enumerate([SWAPPED] * 6 + [TOLD] * 3 + [SWAPPED] * 3):
        seed, texts, classes = Recorder.seen[number]
        shuffle = shuffles[number % 3]
        assert seed == shuffle.seed and texts == [learnt[row] for row in shuffle.order]
        assert sorted(texts) == sorted(learnt[:12])
        assert classes == [CLASSES[learnt.index(text)] for text in texts]
    again = problem().shuffles(rngs(), 1.0)
    assert [(one.order.tolist(), one.seed) for one in again] == [
        (one.order.tolist(), one.seed) for one in shuffles
    ]


@pytest.mark.parametrize(
    ("share", "kept"),
    [
        (1.0, {"x": 10, "y": 4, "z": 1}),
        (0.5, {"x": 5, "y": 2, "z": 1}),
        (0.01, {"x": 1, "y": 1, "z": 1}),
    ],
)
def test_a_share_of_each_class_is_learnt_from_and_no_class_is_lost(share, kept):
    classes = [*"xxyxxxyxzxxyxyx", "x"]
    of = problem(["train"] * 15 + ["dev"], classes)
    shuffles = of.shuffles(rngs(400), share)
    for shuffle in shuffles[:8]:
        assert len(set(shuffle.order.tolist())) == len(shuffle.order)
        assert Counter(classes[row] for row in shuffle.order) == kept
    assert len({tuple(shuffle.order) for shuffle in shuffles[:8]}) > 1
    # chosen anew, at random: every document of x is learnt from by some, and by no more than some
    if share == 0.5:
        chosen = Counter(row for shuffle in shuffles for row in shuffle.order.tolist())
        # 200 ± 8 standard deviations
        assert all(120 < chosen[row] < 280 for row in range(15) if classes[row] in "xy")


@pytest.mark.parametrize("held_out", [("test", "dev"), ("test", "validation"), ("x", "test")])
def test_the_first_split_that_exists_is_scored(held_out):
    found = problem(["train"] * 4 + [*held_out], CLASSES[:6])
    assert (found.held_out, found.train.tolist(), found.test.tolist()) == (
        held_out[1],
        [0, 1, 2, 3],
        [5],
    )


def test_the_most_frequent_classes_of_the_train_split_are_kept():
    """z twice, x and y once each: x is the first by name. w is most frequent in the held-out split
    only."""
    classes = ["z", "y", "x", "z", None, "w", "w", "y", "z"]
    found = problem(["train"] * 5 + ["dev"] * 4, classes, keep=2)
    assert (found.train.tolist(), found.test.tolist(), found.n_left_out) == ([0, 2, 3], [8], 5)
    assert found.of(found.train) == ["z", "x", "z"]
    assert problem(["train"] * 5 + ["dev"] * 4, classes).train.tolist() == [0, 1, 2, 3]
    without = problem(["train"] * 2 + ["validation", "test"], ["x", "y", None, "x"])
    assert (without.held_out, without.test.tolist(), without.n_left_out) == ("test", [3], 0)


@pytest.mark.parametrize(
    ("splits", "classes", "reason"),
    [
        (["train", "validation"], [None, None], "no document has a value in column label"),
        (["all", "all"], ["x", "y"], "no document with a value in column label is in split train"),
        (
            ["train", "train", "test"],
            ["x", "x", "y"],
            "all documents of split train have the same value",
        ),
        (["train", "train", "other"], ["x", "y", "y"], "is in split validation, dev, test"),
        (
            ["train", "train", "test"],
            ["x", "y", "z"],
            "no document with a known value in column label is in split",
        ),
    ],
)
def test_a_data_set_without_a_problem_says_why(splits, classes, reason):
    found = problem_of("label", splits, classes)
    assert isinstance(found, LeftOut) and reason in found.reason


def test_an_entry_has_numbers_only_and_says_which_documents_are_right():
    """The recorder says x of all. Of 12 documents to learn from and 4 to score a quarter has no
    class."""
    of = problem(classes=["x", "y", None, "x"] * 4)
    shuffles = of.shuffles(rngs(2), 0.8)
    entry = of.entry(shuffles, measure("utility", MUTE, shuffles, Recorder, of))
    counts = {
        "n_train": 9,
        "n_learnt": 7,
        "n_test": 3,
        "n_classes": 2,
        "n_left_out": 4,
        "held_out": "validation",
    }
    assert {key: entry[key] for key in counts} == counts and entry["left_out"] is None
    assert entry["majority"] == {"accuracy": 0.666666667, "micro_f1": 0.666666667, "macro_f1": 0.4}
    assert entry["scores"]["clean"]["macro_f1"] == {"mean": 0.4, "sd": 0.0, "each": [0.4, 0.4]}
    assert entry["right"] == {"private": "2 0 2", "clean": "2 0 2"}


def test_scores_by_hand():
    """a: 2 true, 3 said, 2 right: F1 4/5. b is said twice, once rightly: F1 1/2. c: 1 true, never
    right. 3 of 5."""
    truth = ["a", "a", "b", "b", "c"]
    said = ["a", "a", "b", "a", "b"]
    assert score(truth, said) == ClassificationScores(
        0.6, 0.6, pytest.approx((4 / 5 + 1 / 2 + 0) / 3)
    )
    assert score(["a", "b"], ["b", "a"]) == ClassificationScores(0.0, 0.0, 0.0)
    # a class that is only said counts
    assert score(["a", "a"], ["a", "c"]).macro_f1 == pytest.approx((2 / 3 + 0) / 2)
    # The majority class of what is learnt says b to four documents, one of which is b: F1 of b is
    # 2/5, that of a is 0.
    assert majority(["b", "b", "a"], ["a", "a", "a", "b"]) == ClassificationScores(
        0.25, 0.25, pytest.approx(0.2)
    )
    # of equally frequent ones the first by name
    assert majority(["b", "a", "b", "a"], ["a", "a"]).accuracy == 1.0


def test_relative_gain_by_hand():
    assert relative_gain(0.6, 0.8, 0.2, 0.5) == pytest.approx(0.75 - 0.4)
    assert relative_gain(0.8, 0.8, 0.5, 0.5) == 0.0  # clean texts gain nothing
    assert relative_gain(0.4, 0.8, 0.5, 0.5) == -0.5  # utility lost, the attacker's score kept
    assert relative_gain(0.4, 0.8, 0.5, 0.0) is None and relative_gain(0.4, 0.0, 0.5, 0.1) is None
