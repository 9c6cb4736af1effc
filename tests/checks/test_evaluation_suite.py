"""The suite of the scores: a grid of two runs made by hand, and one defect at a time."""

from __future__ import annotations

import json
from copy import deepcopy
from math import inf, nan
from typing import Any

import pytest

from lexveil.checks.evaluation_cells import cells
from lexveil.config import EvaluationParams, GridParams
from lexveil.errors import CheckFailed, MissingArtifact
from lexveil.paths import evaluation
from lexveil.runtime.tables import write_json
from tasks import check_evaluation

RUNS = ("none/none/0.0", "madlib/S1/1.0")
DATASETS = ("letters", "notes")
SETTINGS = EvaluationParams(classifier="linear", shuffles=3, train_share=0.9, max_classes=10)
BACK_ENDS = {"classifier": "linear", "encoder": "tfidf_mean", "language_model": "kneser_ney"}


def scores(*each: float) -> dict[str, Any]:
    mean = round(sum(each) / len(each), 9)
    return {name: {"each": list(each), "mean": mean, "sd": 0.1} for name in ("accuracy", "micro_f1", "macro_f1")}


def entry(**settings: dict[str, Any]) -> dict[str, Any]:
    counts = {
        "n_train": 9,
        "n_learnt": 8,
        "n_test": 4,
        "n_classes": 2,
        "n_left_out": 0,
        "held_out": "test",
        "left_out": None,
    }
    return counts | {"majority": {"macro_f1": 0.5}, "scores": settings}


def of_texts() -> dict[str, Any]:
    """Similarity and perplexity, the one at the lower end of its range, the other at the upper."""
    similarity = {"left_out": None, "n_texts": 3, "n_compared": 2, "n_original_unknown": 1, "n_private_unknown": 1}
    perplexity = {"left_out": None, "n_texts": 3, "n_tokens": 9, "n_unknown": 1}
    return {
        "similarity": similarity | {"mean": -1.0, "sd": None},
        "perplexity": perplexity | {"mean": 1e300, "corpus": 1.0},
    }


def membership() -> dict[str, Any]:
    counts = {"left_out": None, "n_in": 9, "n_out": 8, "n_classes": 2, "known_labels": False, "standard_error": 0.1}
    return counts | {"auc": scores(0.0, 0.5, 1.0)["macro_f1"]}


def records() -> dict[str, dict[str, Any]]:
    left_out = {"left_out": "no document has a value in column label"}
    datasets = {
        "letters": {
            "utility": entry(private=scores(0.0, 1.0, 0.1), clean=scores(0.3, 0.3, 0.3)),
            "attack": entry(static=scores(0.5, 0.6, 0.1), adaptive=scores(1.0, 1.0, 1.0)),
            "membership": membership(),
            **of_texts(),
        },
        "notes": {"utility": left_out, "attack": left_out, "membership": left_out, **of_texts()},
    }
    return {run: BACK_ENDS | {"datasets": deepcopy(datasets)} for run in RUNS}


@pytest.fixture
def check(out, docs):
    return lambda made, datasets=DATASETS, settings=SETTINGS: check_evaluation.run(made, datasets, settings, out, docs)


def test_sound_scores_hold(check, out) -> None:
    # The classifier of letters is no better than the majority's 0.5 by more than 4 documents tell, the attacker is.
    summary = check(records())
    assert summary == {"n_runs": 2, "n_cells": 28, "n_scored": 18, "not_above_majority": ["letters/utility"]}
    record = json.loads(out.read_text())
    assert record["success"] and record["suite"] == "evaluation" and record["summary"]["n_scored"] == 18
    # rows; once; five counts; means; the majority; no missing value
    assert len(record["expectations"]) == 10 and all(one["unexpected"] == 0 for one in record["expectations"])
    assert {one["checked"] for one in record["expectations"]} == {28}


def run_of(made) -> Any:
    return made["madlib/S1/1.0"]["datasets"]


def no_dataset(made) -> None:
    del run_of(made)["notes"]


def no_attack(made) -> None:
    del run_of(made)["letters"]["attack"]


def no_setting(made) -> None:
    del run_of(made)["letters"]["attack"]["scores"]["static"]


def left_out(made) -> None:
    run_of(made)["letters"]["attack"] = {"left_out": "why"}


def scored_although_left_out(made) -> None:
    run_of(made)["notes"]["attack"] = deepcopy(run_of(made)["letters"]["attack"])


def other_documents(made) -> None:
    run_of(made)["letters"]["utility"]["n_test"] = 5


def other_majority(made) -> None:
    run_of(made)["letters"]["utility"]["majority"] = {"macro_f1": 0.25}


def put(value: float):
    def change(made) -> None:
        one = run_of(made)["letters"]["attack"]["scores"]["static"]["macro_f1"]
        one["each"][1] = value
        one["mean"] = sum(one["each"]) / 3

    return change


def one_training_less(made) -> None:
    one = run_of(made)["letters"]["utility"]["scores"]["clean"]["accuracy"]
    one["each"].pop()


def no_training(made) -> None:
    run_of(made)["letters"]["utility"]["scores"]["clean"]["accuracy"]["each"] = []


def other_mean(made) -> None:
    run_of(made)["letters"]["utility"]["scores"]["private"]["micro_f1"]["mean"] += 1e-6


@pytest.mark.parametrize(
    ("defect", "saying"),
    [
        (no_dataset, r"7 of 28 cells .* have no entry; run madlib/S1/1\.0, data set notes"),
        (no_attack, r"2 of 28 cells .* have no entry; run madlib/S1/1\.0, data set letters, attack"),
        (no_setting, r"1 of 28 cells .* have no entry; run madlib/S1/1\.0, data set letters, attack/static"),
        (left_out, r"2 of 28 cells .* scored where the clean baseline is left out"),
        (scored_although_left_out, r"2 of 28 cells .* scored where the clean baseline is left out"),
        (other_documents, r"2 of 28 cells .* or on other documents; run madlib/S1/1\.0, data set letters, utility"),
        (other_majority, r"2 of 28 cells .* or on other documents"),
        (put(1.0001), r"1 of 28 cells .* in their range \(up to 1\); run madlib/S1/1\.0"),
        (put(-0.001), r"1 of 28 cells .* in their range"),
        (put(nan), r"1 of 28 cells .* in their range \(up to 2\)"),
        (one_training_less, r"1 of 28 cells .* evaluation\.shuffles says \(off by up to 1\)"),
        (no_training, r"1 of 28 cells .* evaluation\.shuffles says \(off by up to 3\)"),
        (other_mean, r"1 of 28 cells .* not that of their trainings .*1e-06 away"),
    ],
)
def test_a_defect_stops(check, stops, defect, saying) -> None:
    made = records()
    defect(made)
    stops(lambda: check(made), saying)


def put_in(measured: str, **values: Any):
    def change(made) -> None:
        run_of(made)["letters"][measured] |= values

    return change


def other_auc(made) -> None:
    run_of(made)["letters"]["membership"]["auc"]["mean"] = 0.6


def fewer_attacks(made) -> None:
    run_of(made)["letters"]["membership"]["auc"] = scores(0.5, 0.5)["macro_f1"]


def no_similarity(made) -> None:
    del run_of(made)["notes"]["similarity"]


@pytest.mark.parametrize(
    ("defect", "saying"),
    [
        (no_similarity, "1 of 28 cells .* have no entry; .* data set notes, similarity"),
        (put_in("similarity", mean=1.0001), "1 of 28 cells .* in their range"),
        (put_in("similarity", mean=-1.0001), "1 of 28 cells .* in their range"),
        (put_in("similarity", mean=None), "1 of 28 cells .* in their range"),
        (put_in("similarity", n_texts=4), "1 of 28 cells .* on other documents"),
        (put_in("similarity", n_original_unknown=0), "1 of 28 cells .* on other documents"),
        (put_in("perplexity", mean=0.999), "1 of 28 cells .* in their range"),
        (put_in("perplexity", corpus=nan), "1 of 28 cells .* in their range"),
        (put_in("perplexity", mean=inf, corpus=inf), r"1 of 28 cells .* in their range \(up to 2\)"),
        (put_in("perplexity", n_texts=2), "1 of 28 cells .* on other documents"),
        (put_in("membership", n_in=8), "1 of 28 cells .* on other documents"),
        (put_in("membership", left_out="why"), "1 of 28 cells .* scored where the clean baseline is left out"),
        (put_in("membership", auc=scores(0.5, 0.5, 1.01)["macro_f1"]), "1 of 28 cells .* in their range"),
        (other_auc, "1 of 28 cells .* not that of their trainings"),
        (fewer_attacks, r"1 of 28 cells .*off by up to 1"),
    ],
)
def test_a_defect_of_another_measure_stops(check, stops, defect, saying) -> None:
    made = records()
    defect(made)
    stops(lambda: check(made), saying)


def test_a_rewriting_without_a_known_word_is_no_defect(check) -> None:
    made = records()
    for measured in ("similarity", "perplexity"):
        run_of(made)["letters"][measured] = {"left_out": "no known word"}
    assert check(made)["n_scored"] == 16


@pytest.mark.parametrize(("back_end", "n"), [("classifier", 8), ("encoder", 2), ("language_model", 2)])
def test_another_back_end_stops(check, stops, back_end, n) -> None:
    made = records()
    made["madlib/S1/1.0"][back_end] = "another"
    stops(lambda: check(made), f"{n} of 28 cells .* measured by another back end .* run madlib/S1/1")


def test_a_baseline_far_below_the_majority_stops(check, stops) -> None:
    """400 documents tell a share to 0.049: a mean of 0.452 is as good as the majority's 0.5, one of 0.4 is not."""
    made = records()
    for record in made.values():
        record["datasets"]["letters"]["utility"] |= {"n_test": 400, "scores": {"private": scores(*[0.452] * 3)}}
        record["datasets"]["letters"]["utility"]["scores"]["clean"] = scores(*[0.552] * 3)
    assert check(made)["not_above_majority"] == []
    made["none/none/0.0"]["datasets"]["letters"]["utility"]["scores"]["private"] = scores(*[0.4] * 3)
    stops(lambda: check(made), r"1 of 28 cells .* worse in clear .*data set letters, utility/private: macro F1 0\.051")
    # Of a rewriting that is what may well come out.
    made = records()
    run_of(made)["letters"]["utility"]["scores"]["private"] = scores(0.0, 0.0, 0.0)
    check(made)


def test_other_shuffles_than_asked_stop(check, stops) -> None:
    stops(
        lambda: check(records(), settings=SETTINGS.model_copy(update={"shuffles": 5})),
        r"10 of 28 cells .*off by up to 2",
    )


def test_a_data_set_that_not_even_the_baseline_has_stops(check, stops) -> None:
    stops(lambda: check(records(), (*DATASETS, "poems")), r"14 of 42 cells .* have no entry; run none/none/0\.0")


def test_no_data_set_stops(check, stops) -> None:
    stops(lambda: check(records(), ()), "there are no cells")


def test_columns_by_hand() -> None:
    made = records()
    one_training_less(made)
    other_documents(made)
    frame = cells(made, ["letters"], SETTINGS).set_index(["run", "setting"])
    assert frame.loc[("none/none/0.0", "utility/clean")].tolist() == ["letters", 0, 0, 0, 1, 0, 0, 0.0, 0.0]
    assert frame.loc[("madlib/S1/1.0", "utility/clean")].tolist() == ["letters", 0, 1, 0, 1, 0, 1, 0.0, 0.0]
    assert frame.loc[("madlib/S1/1.0", "membership")].tolist() == ["letters", 0, 0, 0, 1, 0, 0, 0.0, 0.0]


def test_every_run_of_the_grid_is_read_and_no_other(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid = GridParams(mechanisms=["madlib"], strategies=["S1", "S3"], epsilons=[1.0, 10.0])
    names = [("none", "none", 0.0)] + [("madlib", s, e) for s in ("S1", "S3") for e in (1.0, 10.0)]
    for name in [*names, ("tem", "S1", 1.0)]:
        write_json({"name": "/".join(map(str, name))}, evaluation(*name))
    read = check_evaluation.read_scores(grid)
    assert list(read) == ["/".join(map(str, name)) for name in names]
    assert all(one["name"] == name for name, one in read.items())
    evaluation("madlib", "S3", 10.0).unlink()
    with pytest.raises(MissingArtifact, match=r"stage evaluate@madlib-S3-10\.0"):
        check_evaluation.read_scores(grid)
    evaluation("none", "none", 0.0).unlink()
    with pytest.raises(MissingArtifact, match="stage evaluate_baseline"):
        check_evaluation.read_scores(grid)


def test_a_failure_removes_an_older_record(check, out) -> None:
    check(records())
    made = records()
    left_out(made)
    with pytest.raises(CheckFailed):
        check(made)
    assert not out.exists()
