"""Scores against values computed by hand."""

import pytest

from lexveil.evaluation.scores import ClassificationScores, majority, relative_gain, score, spread


def test_scores_by_hand() -> None:
    """a: 2 true, 3 said, 2 right: F1 4/5. b: 2 true, 1 said, 1 right: 2/3. c: 1 true, never right. 3 of 5 right."""
    truth, said = ["a", "a", "b", "b", "c"], ["a", "a", "b", "a", "b"]
    # b is said twice, once rightly: precision 1/2, recall 1/2, F1 1/2.
    assert score(truth, said) == ClassificationScores(
        3 / 5, pytest.approx(3 / 5), pytest.approx((4 / 5 + 1 / 2 + 0) / 3)
    )


def test_best_and_worst() -> None:
    assert score(["a", "b"], ["a", "b"]) == ClassificationScores(1.0, 1.0, 1.0)
    assert score(["a", "b"], ["b", "a"]) == ClassificationScores(0.0, 0.0, 0.0)
    assert score(["a", "a"], ["a", "c"]).macro_f1 == pytest.approx((2 / 3 + 0) / 2)  # a class that is only said counts


def test_majority_is_that_of_the_train_split() -> None:
    """Says b to four documents, one of which is b: F1 of b is 2/5, that of a is 0."""
    assert majority(["b", "b", "a"], ["a", "a", "a", "b"]) == ClassificationScores(0.25, 0.25, pytest.approx(0.2))


def test_majority_of_equally_frequent_classes_is_the_first_by_name() -> None:
    assert majority(["b", "a", "b", "a"], ["a", "a"]).accuracy == 1.0


def test_spread_is_mean_and_sample_deviation() -> None:
    made = spread(
        [ClassificationScores(0.2, 0.2, 0.5), ClassificationScores(0.4, 0.4, 0.5), ClassificationScores(0.9, 0.9, 0.5)]
    )
    # Mean 0.5; squares of -0.3, -0.1, 0.4 add up to 0.26, over 2.
    assert made["accuracy"] == {"mean": 0.5, "sd": pytest.approx(0.13**0.5), "each": [0.2, 0.4, 0.9]}
    assert made["macro_f1"] == {"mean": 0.5, "sd": 0.0, "each": [0.5] * 3}


def test_one_training_has_no_deviation() -> None:
    assert spread([ClassificationScores(0.2, 0.2, 0.5)])["accuracy"] == {"mean": 0.2, "sd": None, "each": [0.2]}


def test_relative_gain_by_hand() -> None:
    assert relative_gain(0.6, 0.8, 0.2, 0.5) == pytest.approx(0.75 - 0.4)
    assert relative_gain(0.8, 0.8, 0.5, 0.5) == 0.0  # clean texts gain nothing
    assert relative_gain(0.4, 0.8, 0.5, 0.5) == -0.5  # utility lost, the attacker's score kept
    assert relative_gain(0.4, 0.8, 0.5, 0.0) is None and relative_gain(0.4, 0.0, 0.5, 0.1) is None
