"""The plan suite through its SQL: sound plans pass, and each single defect stops the stage with its own message."""

from __future__ import annotations

import json
from math import inf, nan

import pandas as pd
import pyarrow as pa
import pytest

from lexveil import paths
from lexveil.config import GridParams
from tasks import check_plans

MECHANISMS = ["madlib", "tem"]

SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("doc_id", pa.string()),
        ("field", pa.string()),
        ("n_words", pa.int64()),
        ("n_tokens", pa.int64()),
        ("n_perturbed", pa.int64()),
        ("budget", pa.float64()),
        ("epsilon_per_token", pa.float64()),
    ]
)


def plan() -> pd.DataFrame:
    rows = [
        ("pairs", "a", "text", 9, 7, 3, 10.0, 10.0 / 3),
        ("pairs", "a", "text_b", 8, 7, 7, 10.0, 10.0 / 7),
        ("pairs", "b", "text", 2, 2, 0, 10.0, 0.0),
        ("singles", "a", "text", 4, 3, 3, 0.7, 0.7 / 3),
    ]
    return pd.DataFrame(rows, columns=SCHEMA.names, dtype=object)


def put(column: str, value: object, at: int = 0) -> pd.DataFrame:
    frame = plan()
    frame.at[at, column] = value
    return frame


@pytest.fixture
def check(write, docs, out, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _check(*frames: pd.DataFrame, strategy: str = "S1"):
        epsilons = [float(n) for n in range(1, len(frames) + 1)]
        for epsilon, frame in zip(epsilons, frames, strict=True):
            for mechanism in MECHANISMS:  # at a base epsilon all have the same plan
                write(str(paths.plan(mechanism, strategy, epsilon)), frame, SCHEMA)
        grid = GridParams(mechanisms=MECHANISMS, strategies=[strategy], epsilons=epsilons)
        return check_plans.run(grid, out, docs, machine)

    return _check


@pytest.mark.parametrize("strategy", ["S1", "S2", "S3", "S4"])
def test_a_sound_plan_passes(check, out, strategy):
    assert check(plan(), strategy=strategy) == 4
    records = [(out / mechanism / strategy / "1.0.json").read_text(encoding="utf-8") for mechanism in MECHANISMS]
    record = json.loads(records[0])
    assert records[0] == records[1]
    assert record["success"] is True
    assert record["suite"] == f"plans/{strategy}/1.0"
    assert record["summary"] == {"n_texts": 4, "n_words": 23, "n_tokens": 19, "n_perturbed": 13}


def test_only_s2_may_leave_some_of_the_budget(check, stops):
    thrifty = put("epsilon_per_token", 3.0)
    assert check(thrifty, strategy="S2") == 4
    for strategy in ("S1", "S3", "S4"):
        stops(
            lambda strategy=strategy: check(thrifty, strategy=strategy),
            rf"^plans/{strategy}/1.0: 1 of 4 texts leave some of their budget, which {strategy} does not "
            r"\(epsilon_unspent up to 0\.1, limit 1e-09\)",
        )


def test_rounding_is_no_overrun(check):
    assert check(put("epsilon_per_token", 10.0 / 3 + 1e-10)) == 4


def test_a_record_does_not_know_the_other_plans(check, out):
    """Adding an epsilon must not make the runs of the others stale."""
    check(plan())
    alone = (out / "madlib/S1/1.0.json").read_bytes()
    check(plan(), put("n_words", 10))
    assert (out / "madlib/S1/1.0.json").read_bytes() == alone
    assert sorted(file.name for file in (out / "madlib/S1").iterdir()) == ["1.0.json", "2.0.json"]
    assert (out / "madlib/S1/2.0.json").read_bytes() != alone


def test_one_bad_plan_withholds_all_records_and_names_itself(check, stops, out):
    check(plan())
    stops(
        lambda: check(plan(), put("epsilon_per_token", 4.0)),
        r"^plans/S1/2\.0: 1 of 4 texts spend more than their budget",
    )


DEFECTS = {
    "no text": (plan().head(0), "the plan has no text, at least 1 is needed"),
    "text twice": (put("field", "text", at=1), r"2 of 4 texts are planned more than once"),
    "negative count": (put("n_perturbed", -1, at=2), r"1 of 4 texts have a negative number .*n_perturbed -1, limit 0"),
    "more perturbed than there": (put("n_tokens", 2), r"1 of 4 texts are to have more tokens .*by up to 1, limit 0"),
    "negative epsilon": (
        put("epsilon_per_token", -0.5, at=2),
        r"1 of 4 .*negative epsilon \(epsilon_per_token -0\.5, limit 0",
    ),
    "no epsilon": (put("epsilon_per_token", 0.0), "1 of 4 texts have tokens to perturb without a finite epsilon"),
    "idle epsilon": (put("epsilon_per_token", 1.0, at=2), "or an epsilon without such tokens"),
    "infinite epsilon": (put("epsilon_per_token", inf), "1 of 4 texts have tokens to perturb without a finite epsilon"),
    "other budget": (
        put("budget", 11.0, at=2),
        "3 of 4 texts have a budget that is negative, not finite, or not the same",
    ),
    "negative budget": (put("budget", -1.0, at=3), "1 of 4 texts have a budget that is negative"),
    "overrun": (
        put("epsilon_per_token", 4.0),
        r"1 of 4 texts spend more than their budget \(epsilon_overrun up to 0\.2, limit 1e-09\)\. No noise was drawn .*"
        r"`dvc repro --force plan_budgets`",
    ),
    "small overrun": (put("epsilon_per_token", 0.7 / 3 + 1e-8, at=3), r"1 of 4 .*overrun up to 3e-08, limit 1e-09"),
    "unspent": (put("epsilon_per_token", 3.0), r"1 of 4 texts leave some of their budget, .*up to 0\.1, limit 1e-09"),
    "null budget": (put("budget", None, at=3), "1 of 4 texts have a budget that is negative, not finite"),
    "null epsilon": (put("epsilon_per_token", None), "1 of 4 texts have tokens to perturb without a finite epsilon"),
    "epsilon is no number": (put("epsilon_per_token", nan), "1 of 4 texts have tokens to perturb without a finite eps"),
    "null count": (put("n_perturbed", None), "1 of 4 texts have tokens to perturb without a finite epsilon"),
    "null id": (put("doc_id", None), "1 of 4 texts have no value in doc_id"),
    "null tokens": (put("n_tokens", None), "1 of 4 texts have no value in n_perturbed_beyond"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_stops(check, stops, defect):
    frame, saying = DEFECTS[defect]
    stops(lambda: check(frame), r"^plans/S1/1\.0: .*" + saying)
