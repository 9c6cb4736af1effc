"""The suite of the scores: a grid of two runs made by hand, and one defect at a time."""

from __future__ import annotations

import json
from copy import deepcopy
from math import nan
from typing import Any

import pytest

from tasks import check_evaluation
from tasks.check_evaluation import cells
from tasks.errors import CheckFailed, MissingArtifact
from tasks.io.params import GridParams
from tasks.io.paths import evaluation
from tasks.io.tables import write_json

RUNS = ("none/none/0.0", "madlib/S1/1.0")
DATASETS = ("letters", "notes")


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
    return counts | {"majority": {"accuracy": 0.5}, "scores": settings}


def records() -> dict[str, dict[str, Any]]:
    left_out = {"left_out": "no document has a value in column label"}
    datasets = {
        "letters": {
            "utility": entry(private=scores(0.0, 1.0, 0.1), clean=scores(0.3, 0.3, 0.3)),
            "attack": entry(static=scores(0.5, 0.6, 0.1), adaptive=scores(1.0, 1.0, 1.0)),
        },
        "notes": {"utility": left_out, "attack": left_out},
    }
    return {run: {"datasets": deepcopy(datasets)} for run in RUNS}


@pytest.fixture
def check(out, docs):
    return lambda made, datasets=DATASETS, n_shuffles=3: check_evaluation.run(made, datasets, n_shuffles, out, docs)


def test_sound_scores_hold(check, out) -> None:
    assert check(records()) == {"n_runs": 2, "n_cells": 16, "n_scored": 8}
    record = json.loads(out.read_text())
    assert record["success"] and record["suite"] == "evaluation" and record["summary"]["n_scored"] == 8
    # rows; once; four counts; means; no missing value
    assert len(record["expectations"]) == 8 and all(one["unexpected"] == 0 for one in record["expectations"])
    assert {one["checked"] for one in record["expectations"]} == {16}


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
    run_of(made)["letters"]["utility"]["majority"] = {"accuracy": 0.25}


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
        (no_dataset, r"4 of 16 cells .* have no entry; run madlib/S1/1\.0, data set notes"),
        (no_attack, r"2 of 16 cells .* have no entry; run madlib/S1/1\.0, data set letters, attack"),
        (no_setting, r"1 of 16 cells .* have no entry; run madlib/S1/1\.0, data set letters, attack/static"),
        (left_out, r"2 of 16 cells .* scored where the clean baseline is left out"),
        (scored_although_left_out, r"2 of 16 cells .* scored where the clean baseline is left out"),
        (other_documents, r"2 of 16 cells .* or on other documents; run madlib/S1/1\.0, data set letters, utility"),
        (other_majority, r"2 of 16 cells .* or on other documents"),
        (put(1.0001), r"1 of 16 cells .* do not lie in \[0, 1\] \(up to 1\); run madlib/S1/1\.0"),
        (put(-0.001), r"1 of 16 cells .* do not lie in \[0, 1\]"),
        (put(nan), r"1 of 16 cells .* do not lie in \[0, 1\] \(up to 2\)"),
        (one_training_less, r"1 of 16 cells .* evaluation\.shuffles says \(off by up to 1\)"),
        (no_training, r"1 of 16 cells .* evaluation\.shuffles says \(off by up to 3\)"),
        (other_mean, r"1 of 16 cells .* not that of their trainings .*1e-06 away"),
    ],
)
def test_a_defect_stops(check, stops, defect, saying) -> None:
    made = records()
    defect(made)
    stops(lambda: check(made), saying)


def test_other_shuffles_than_asked_stop(check, stops) -> None:
    stops(lambda: check(records(), n_shuffles=5), r"8 of 16 cells .*off by up to 2")


def test_a_data_set_that_not_even_the_baseline_has_stops(check, stops) -> None:
    stops(lambda: check(records(), (*DATASETS, "poems")), r"8 of 24 cells .* have no entry; run none/none/0\.0")


def test_no_data_set_stops(check, stops) -> None:
    stops(lambda: check(records(), ()), "there are no cells")


def test_columns_by_hand() -> None:
    made = records()
    one_training_less(made)
    other_documents(made)
    frame = cells(made, ["letters"], 3).set_index(["run", "setting"])
    assert frame.loc[("none/none/0.0", "utility/clean")].tolist() == ["letters", 0, 0, 1, 0, 0, 0.0]
    assert frame.loc[("madlib/S1/1.0", "utility/clean")].tolist() == ["letters", 0, 1, 1, 0, 1, 0.0]


def test_every_run_of_the_grid_is_read_and_no_other(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid = GridParams(["madlib"], ["S1", "S3"], [1.0, 10.0])
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
