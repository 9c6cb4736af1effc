"""The suite of the scores: a grid of two runs made by hand, and one defect at a time."""

import json
from copy import deepcopy
from functools import reduce
from math import nan
from operator import getitem

import pytest

from lexveil.io.config import EvaluationParams
from lexveil.lab.checks.evaluation_suite import evaluation_suite
from lexveil.lab.evaluation.metrics import BY_NAME
from tasks import check_evaluation
from tests.checks.conftest import rules_of

RUNS = ("none/none/0.0", "madlib/S1/1.0")
DATASETS = ("letters", "notes")
SETTINGS = EvaluationParams(classifier="linear", shuffles=3, train_share=0.9, max_classes=10)
BACK_ENDS = {"classifier": "linear", "encoder": "tfidf_mean", "language_model": "kneser_ney"}


def scores(*each):
    mean = round(sum(each) / len(each), 9)
    return {
        name: {"each": list(each), "mean": mean, "sd": 0.1}
        for name in ("accuracy", "micro_f1", "macro_f1")
    }


def entry(**settings):
    counts = {"n_train": 9, "n_learnt": 8, "n_test": 4, "n_classes": 2, "n_left_out": 0}
    return (
        counts
        | {"held_out": "test", "left_out": None}
        | {"majority": {"macro_f1": 0.5}, "scores": settings}
    )


def of_texts():
    """Similarity and perplexity, the one at the lower end of its range, the other at the upper."""
    similarity = {
        "left_out": None,
        "n_texts": 3,
        "n_compared": 2,
        "n_original_unknown": 1,
        "n_private_unknown": 1,
    }
    perplexity = {"left_out": None, "n_texts": 3, "n_tokens": 9, "n_unknown": 1}
    scored = {"mean": -1.0, "sd": None}, {"mean": 1e300, "corpus": 1.0}
    return {"similarity": similarity | scored[0], "perplexity": perplexity | scored[1]}


def membership():
    counts = {
        "left_out": None,
        "n_in": 9,
        "n_out": 8,
        "n_classes": 2,
        "known_labels": False,
        "standard_error": 0.1,
    }
    return counts | {"auc": scores(0.0, 0.5, 1.0)["macro_f1"]}


def records():
    left_out = {"left_out": "no document has a value in column label"}
    utility = entry(private=scores(0.0, 1.0, 0.1), clean=scores(0.3, 0.3, 0.3))
    attack = entry(static=scores(0.5, 0.6, 0.1), adaptive=scores(1.0, 1.0, 1.0))
    letters = {"utility": utility, "attack": attack, "membership": membership()}
    datasets = {
        "letters": letters | of_texts(),
        "notes": dict.fromkeys(letters, left_out) | of_texts(),
    }
    return {run: BACK_ENDS | {"datasets": deepcopy(datasets)} for run in RUNS}


@pytest.fixture
def check(out, docs, monkeypatch):
    # not one that was added since
    metrics = [BY_NAME[name] for name in records()[RUNS[0]]["datasets"]["letters"]]
    monkeypatch.setattr("lexveil.lab.checks.evaluation_cells.METRICS", metrics)
    return lambda made, datasets=DATASETS, settings=SETTINGS: check_evaluation.run(
        made, datasets, settings, out, docs
    )


def test_sound_scores_hold(check, out):
    # The classifier of letters is no better than the majority's 0.5 by more than 4 documents tell,
    # the attacker is.
    summary = check(records())
    assert summary == {
        "n_runs": 2,
        "n_cells": 28,
        "n_scored": 18,
        "not_above_majority": ["letters/utility"],
    }
    record = json.loads(out.read_text())
    assert (
        record["success"]
        and record["suite"] == "evaluation"
        and record["summary"]["n_scored"] == 18
    )
    assert {(one["checked"], one["unexpected"]) for one in record["expectations"]} == {(28, 0)}


GONE = object()


def edited(path, value=GONE):
    """The records with one thing of the run changed, or taken away."""
    made = records()
    *keys, last = path.split("/")
    place = reduce(getitem, keys, made["madlib/S1/1.0"])
    place.pop(last) if value is GONE else place.__setitem__(last, value)
    return made


DEFECTS = [
    (edited("datasets/notes"), ("is_missing", 7, 1)),
    (edited("datasets/letters/attack/scores/static"), ("is_missing", 1, 1)),
    (edited("datasets/letters/attack", {"left_out": "why"}), ("is_at_odds", 2, 1)),
    (
        edited("datasets/notes/attack", records()[RUNS[0]]["datasets"]["letters"]["attack"]),
        ("is_at_odds", 2, 1),
    ),
    (edited("datasets/letters/utility/majority", {"macro_f1": 0.25}), ("is_at_odds", 2, 1)),
    (edited("datasets/letters/similarity/n_texts", 4), ("is_at_odds", 1, 1)),
    (edited("datasets/letters/perplexity/n_texts", 2), ("is_at_odds", 1, 1)),
    (edited("datasets/letters/membership/left_out", "why"), ("is_at_odds", 1, 1)),
    (
        edited("datasets/letters/attack/scores/static", scores(0.5, 1.0001, 0.1)),
        ("n_outside", 1, 3),
    ),
    (edited("datasets/letters/similarity/mean", 1.0001), ("n_outside", 1, 1)),
    (edited("datasets/letters/perplexity/mean", 0.999), ("n_outside", 1, 1)),
    (edited("datasets/letters/perplexity/corpus", nan), ("n_outside", 1, 1)),
    (
        edited("datasets/letters/membership/auc", scores(0.5, 0.5, 1.01)["macro_f1"]),
        ("n_outside", 1, 1),
    ),
    (
        edited("datasets/letters/utility/scores/clean/accuracy/each", [0.3, 0.3]),
        ("n_shuffles_off", 1, 1),
    ),
    (
        edited("datasets/letters/membership/auc", scores(0.5, 0.5)["macro_f1"]),
        ("n_shuffles_off", 1, 1),
    ),
    (
        edited("datasets/letters/membership/auc", {"each": [0.5] * 3, "mean": 0.6}),
        ("mean_gap", 1, pytest.approx(0.1)),
    ),
    (edited("classifier", "another"), ("is_of_another", 8, 1)),
    (edited("encoder", "another"), ("is_of_another", 2, 1)),
    (edited("language_model", "another"), ("is_of_another", 2, 1)),
]


@pytest.mark.parametrize(("made", "first"), DEFECTS)
def test_each_defect_stops(check, fault, made, first):
    assert fault(lambda: check(made)) == first


def test_a_baseline_far_below_the_majority_stops(check, fault):
    """400 documents tell a share to 0.049: a mean of 0.452 is as good as the majority's 0.5, one of
    0.4 is not."""
    made = records()
    for record in made.values():
        record["datasets"]["letters"]["utility"] |= {
            "n_test": 400,
            "scores": {"private": scores(*[0.452] * 3)},
        }
        record["datasets"]["letters"]["utility"]["scores"]["clean"] = scores(*[0.552] * 3)
    assert check(made)["not_above_majority"] == []
    # Of a rewriting that is what may well come out, and that no word of it is known.
    assert (
        check(edited("datasets/letters/similarity", {"left_out": "no known word"}))["n_scored"]
        == 17
    )
    assert (
        fault(
            lambda: check(edited("datasets/letters/utility/scores/private", scores(0.0, 0.0, 0.0)))
        )
        is None
    )
    made["none/none/0.0"]["datasets"]["letters"]["utility"]["scores"]["private"] = scores(
        *[0.4] * 3
    )
    assert fault(lambda: check(made)) == ("below_majority", 1, pytest.approx(0.051))


def test_what_is_asked_for_and_missing_stops(check, fault):
    asked = SETTINGS.model_copy(update={"shuffles": 5})
    assert fault(lambda: check(records(), settings=asked)) == ("n_shuffles_off", 10, 2)
    assert fault(lambda: check(records(), (*DATASETS, "poems"))) == ("is_missing", 14, 1)
    assert fault(lambda: check(records(), ())) == ("rows", 1, 0)


def test_each_rule_was_seen_to_fail():
    # cells are made one by one
    seen = {first for _, (first, _, _) in DEFECTS} | {"rows", "below_majority"}
    assert rules_of(evaluation_suite()) - {"run,dataset,setting"} == seen
