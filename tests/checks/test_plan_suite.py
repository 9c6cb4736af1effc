"""The plan suite through its SQL: sound plans pass, and each single defect stops the stage with its
own message."""

import json
from math import inf, nan

import pandas as pd
import pyarrow as pa
import pytest

from lexveil import CheckFailedError
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon
from lexveil.io.config import GridParams
from lexveil.lab.checks.plan_suite import plan_suite
from tasks import check_plans
from tests.checks.conftest import rules_of

MECHANISMS = ["madlib", "tem"]
NAMES = (
    (pa.string(), ("dataset", "doc_id", "field")),
    (pa.int64(), ("n_words", "n_tokens", "n_perturbed", "divisor")),
)
KINDS = *NAMES, (pa.float64(), ("budget", "epsilon_per_token"))
SCHEMA = pa.schema([(name, kind) for kind, names in KINDS for name in names])


def plan():
    rows = [
        ("pairs", "a", "text", 9, 7, 3, 9, 10.0, 10.0 / 9),
        ("pairs", "a", "text_b", 8, 7, 7, 8, 10.0, 10.0 / 8),
        ("pairs", "b", "text", 2, 2, 0, 2, 10.0, 0.0),
        ("singles", "a", "text", 3, 3, 3, 3, 0.7, 0.7 / 3),
    ]
    return pd.DataFrame(rows, columns=SCHEMA.names, dtype=object)


def plan_by_tokens():
    frame = plan()
    frame["divisor"] = frame["n_perturbed"]
    frame["epsilon_per_token"] = [10.0 / 3, 10.0 / 7, 0.0, 0.7 / 3]
    return frame


def plan_per_token():
    frame = plan_by_tokens()
    frame["epsilon_per_token"] = [10.0 / 7, 10.0 / 7, 0.0, 0.7 / 3]
    return frame


def put(column, value, row=0, of=plan):
    frame = of()
    frame.at[row, column] = value
    return frame


@pytest.fixture
def check(write, docs, out, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _check(*frames, strategy="S1", budget="document"):
        epsilons = [BaseEpsilon(float(n)) for n in range(1, len(frames) + 1)]
        for epsilon, frame in zip(epsilons, frames, strict=True):
            for mechanism in MECHANISMS:  # at a base epsilon all have the same plan
                write(str(paths.plan(mechanism, strategy, epsilon)), frame, SCHEMA)
        grid = GridParams(
            mechanisms=MECHANISMS, strategies=[strategy], epsilons=epsilons, budget=budget
        )
        return check_plans.run(grid, out, docs, machine)

    return _check


@pytest.mark.parametrize(
    ("strategy", "of", "epsilon"),
    [("S1", plan, 10.0 / 9), ("S2", plan, 10.0 / 9)]
    + [(strategy, plan_by_tokens, 10.0 / 3) for strategy in ("S3", "S4")],
)
def test_all_strategies_divide_the_whole_budget(check, fault, strategy, of, epsilon):
    rounded = put("epsilon_per_token", epsilon + 1e-10, of=of)
    assert fault(lambda: check(rounded, strategy=strategy)) is None
    less = put("epsilon_per_token", epsilon * 0.99, of=of)
    assert fault(lambda: check(less, strategy=strategy)) == UNDIVIDED


def test_s1_and_s2_divide_by_all_words_of_a_text(check, fault):
    by_tokens = put("divisor", 3)
    by_tokens.at[0, "epsilon_per_token"] = 10.0 / 3
    for strategy in ("S1", "S2"):
        found = fault(lambda strategy=strategy: check(by_tokens, strategy=strategy))
        assert found == ("is_without_words", 1, 1)
    assert fault(lambda: check(plan_by_tokens(), strategy="S3")) is None


def test_where_a_budget_is_of_a_token_all_have_the_same(check, fault):
    assert check(plan_per_token(), budget="token") == 4
    less = put("epsilon_per_token", 1.0, of=plan_per_token)
    assert fault(lambda: check(less, budget="token")) == ("is_uneven", 1, 1)


def test_a_record_does_not_know_the_other_plans(check, out):
    """Adding an epsilon must not make the runs of the others stale; one bad plan withholds all
    records."""
    assert check(plan()) == 4
    alone = (out / "madlib/S1/1.0.json").read_bytes()
    record = json.loads(alone)
    assert (out / "tem/S1/1.0.json").read_bytes() == alone and record["success"] is True
    assert record["summary"] == {"n_texts": 4, "n_words": 22, "n_tokens": 19, "n_perturbed": 13}
    check(plan(), put("n_tokens", 8))
    assert (
        (out / "madlib/S1/1.0.json").read_bytes()
        == alone
        != (out / "madlib/S1/2.0.json").read_bytes()
    )
    says = (
        r"^plans/S1/2\.0: 1 of 4 texts spend more than their budget .*`dvc repro --force "
        r"plan_budgets`"
    )
    with pytest.raises(CheckFailedError, match=says):
        check(plan(), put("epsilon_per_token", 4.0))
    assert not out.exists()


UNDIVIDED = ("epsilon_undivided", 1, pytest.approx(0.01, rel=1e-6))
DEFECTS = [
    (plan().head(0), ("rows", 1, 0)),
    (put("field", "text", row=1), ("dataset,doc_id,field", 2, 2)),
    (put("n_perturbed", -1, row=2), ("n_perturbed", 1, -1)),
    (put("n_tokens", 2), ("n_perturbed_beyond", 1, 1)),
    (put("divisor", 6, row=1), ("is_short_divisor", 1, 1)),
    (put("divisor", None), ("is_short_divisor", 1, 1)),
    (put("n_words", 10), ("is_without_words", 1, 1)),
    (put("epsilon_per_token", -0.5, row=2), ("epsilon_per_token", 1, -0.5)),
    *(
        (put("epsilon_per_token", value), ("is_mismatched", 1, 1))
        for value in (0.0, inf, nan, None)
    ),
    (put("epsilon_per_token", 1.0, row=2), ("is_mismatched", 1, 1)),
    (put("budget", 11.0, row=2), ("is_odd_budget", 3, 1)),
    (put("budget", -1.0, row=3), ("is_odd_budget", 1, 1)),
    (put("epsilon_per_token", 0.7 / 3 + 1e-8, row=3), ("epsilon_overrun", 1, pytest.approx(3e-8))),
    (put("epsilon_per_token", 1.1), UNDIVIDED),
    (put("doc_id", None), ("n_missing", 1, 1)),
]


@pytest.mark.parametrize(("frame", "first"), DEFECTS)
def test_each_defect_stops(check, fault, frame, first):
    assert fault(lambda: check(frame)) == first


def test_each_rule_was_seen_to_fail():
    assert rules_of(plan_suite("S1")) <= {first for _, (first, _, _) in DEFECTS}
