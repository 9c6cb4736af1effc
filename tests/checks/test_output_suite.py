"""The output suite through its SQL: a run and a baseline made by hand, and one defect at a time."""

import json
from math import inf, nan

import pandas as pd
import pyarrow as pa
import pytest

from lexveil.lab.checks.output_suite import output_suite
from tasks import check_outputs
from tests.checks.conftest import SECRET, add, put, rules_of

STRING = pa.string()
INT = pa.int64()
INPUTS = pa.schema(
    [
        (name, STRING)
        for name in (
            "dataset",
            "doc_id",
            "split",
            "text",
            "text_b",
            "label",
            "attribute",
            "context",
        )
    ]
)
SPENT = ("epsilon_spent", pa.float64())
KEPT = ("n_unprotected", INT)
MADE = [(f"n_{name}", INT) for name in ("tokens_in", "tokens_out", "words_out")]
DOCUMENTS = pa.schema([*INPUTS, *MADE, SPENT, KEPT])
KEY = [(name, STRING) for name in ("dataset", "doc_id", "field")]
LEDGER = pa.schema(
    [
        *KEY,
        ("position", pa.int32()),
        ("class", STRING),
        ("epsilon", pa.float64()),
        ("action", STRING),
        ("n_words", pa.int8()),
        ("word_id", pa.int32()),
    ]
)
COUNTS = ("n_words", "n_tokens", "n_perturbed")
AMOUNTS = ("budget", "epsilon_per_token")
PLAN = pa.schema(
    [*KEY, *((name, INT) for name in COUNTS), *((name, pa.float64()) for name in AMOUNTS)]
)
V = 100


def inputs():
    rows = [
        ("pairs", "a", "train", f"{SECRET} one.", f"two {SECRET}", "1", "x", None),
        ("pairs", "b", "test", "...", None, None, None, "three"),
        ("singles", "a", "all", f"the {SECRET}", None, "0", None, None),
        ("singles", "b", "all", "", None, "0", None, None),
    ]
    return pd.DataFrame(rows, columns=INPUTS.names, dtype=object)


def documents():
    """Two texts of one document, one of kept marks, one with a sampled token, one without
    tokens."""
    rewritten = inputs()
    rewritten["text"] = pd.Series(["other words here.", "...", "a name", ""], dtype=object)
    rewritten["text_b"] = pd.Series(["else", None, None, None], dtype=object)
    numbers = [(5, 4, 5, 9.0, 1), (1, 1, 1, 0.0, 1), (2, 2, 2, 0.5, 0), (0, 0, 0, 0.0, 0)]
    return rewritten.join(
        pd.DataFrame(numbers, columns=DOCUMENTS.names[len(INPUTS) :], dtype=object)
    )


def ledger():
    rows = [
        ("pairs", "a", "text", 0, "word", 2.5, "perturbed", 2, 99),
        ("pairs", "a", "text", 1, "word", 2.5, "perturbed", 1, 0),
        ("pairs", "a", "text", 2, "punctuation", 0.0, "kept", 1, -1),
        ("pairs", "a", "text_b", 0, "oov", 0.0, "dropped", 1, -1),
        ("pairs", "a", "text_b", 1, "word", 4.0, "perturbed", 1, 7),
        ("pairs", "b", "text", 0, "punctuation", 0.0, "kept", 1, -1),
        ("singles", "a", "text", 0, "stopword", 0.5, "perturbed", 1, 3),
        ("singles", "a", "text", 1, "oov", 0.0, "sampled", 1, 4),
    ]
    return pd.DataFrame(rows, columns=LEDGER.names, dtype=object)


def plan():
    rows = [
        ("pairs", "a", "text", 3, 3, 2, 5.0, 2.5),
        ("pairs", "a", "text_b", 2, 2, 1, 5.0, 4.0),
        ("pairs", "b", "text", 1, 1, 0, 5.0, 0.0),
        ("singles", "a", "text", 2, 2, 1, 0.5, 0.5),
        ("singles", "b", "text", 0, 0, 0, 0.5, 0.0),
    ]
    return pd.DataFrame(rows, columns=PLAN.names, dtype=object)


def clean_documents():
    numbers = [(5, 5, 5, 0.0, 5), (1, 1, 1, 0.0, 1), (2, 2, 2, 0.0, 2), (0, 0, 0, 0.0, 0)]
    return inputs().join(
        pd.DataFrame(numbers, columns=DOCUMENTS.names[len(INPUTS) :], dtype=object)
    )


def clean_ledger():
    return ledger().assign(epsilon=0.0, action="kept", n_words=1, word_id=-1)


@pytest.fixture
def check(write, tmp_path, docs, out, machine):
    """Write one run (or the clean baseline, if there is no plan) and judge it."""

    def _check(documents, ledger, plan=None, given=None):
        name = "none/none/0.0" if plan is None else "madlib/S1/1.0"
        write(f"{name}/documents.parquet", documents, DOCUMENTS)
        write(f"{name}/tokens.parquet", ledger, LEDGER)
        granted = None if plan is None else write("plans/S1/1.0.parquet", plan, PLAN)
        stage = "baseline" if plan is None else "privatize@madlib-S1-1.0"
        one = check_outputs.WordOutput(
            name, stage, tmp_path / name, granted, 0 if plan is None else V
        )
        table = inputs() if given is None else given
        given_table = pa.table(
            [pa.array(table[key].tolist(), STRING) for key in INPUTS.names], schema=INPUTS
        )
        return check_outputs.run(given_table, [one], out, docs, machine)

    return _check


def test_a_sound_run_and_a_sound_baseline_pass(check, out):
    totals = {
        "n_tokens_in": 8,
        "n_tokens_out": 7,
        "n_words_out": 8,
        "n_dropped": 1,
        "n_unprotected": 2,
    }
    assert check(documents(), ledger(), plan()) == {"madlib/S1/1.0": {"n_documents": 4} | totals}
    record = out.read_text(encoding="utf-8")
    assert json.loads(record)["summary"] == {"runs": {"madlib/S1/1.0": {"n_documents": 4} | totals}}
    assert SECRET not in record
    assert check(clean_documents(), clean_ledger())["none/none/0.0"]["n_tokens_out"] == 8


NOBODY = ("singles", "z", "all", "text", None, None, None, None, 0, 0, 0, 0.0, 0)
EXTRA = ("singles", "z", "text", 0, "word", 0.0, "kept", 1, -1)
D = documents()
L = ledger()

DEFECTS = [
    (D.drop(3), L, ("is_lost", 1, 1)),
    (add(D, *D.loc[1]), L, ("dataset,doc_id", 2, 2)),
    (add(D, *NOBODY), L, ("is_stray", 1, 1)),
    (D, add(L, *EXTRA), ("is_lost", 1, 1)),
    (put(D, "doc_id", None, 3), L, ("is_lost", 1, 1)),
    (put(D, "text", None), L, ("n_nulls", 1, 1)),
    (put(D, "label", "2"), L, ("n_miscarried", 1, 1)),
    (put(D, "context", "four", 1), L, ("n_miscarried", 1, 1)),
    (D, put(L, "position", 0, 1), ("n_misplaced", 1, 1)),  # twice
    (D, put(L, "position", 3, 2), ("n_misplaced", 1, 1)),  # left out
    (D, put(L, "action", None, 2), ("n_unclear", 1, 1)),
    (D, put(L, "class", "noun", 2), ("n_unclear", 1, 1)),
    (D, put(L, "n_words", 4), ("n_unclear", 1, 1)),
    (put(D, "n_tokens_in", 6), L, ("tokens_in_gap", 1, 1)),
    (put(D, "n_tokens_out", 5), L, ("tokens_out_gap", 1, 1)),  # dropped, and counted
    (put(D, "n_words_out", 4), L, ("words_out_gap", 1, 1)),
    (put(D, "n_words_out", 1, 2), put(L, "n_words", 0, 7), ("n_words_beyond", 1, 1)),
    (put(D, "n_words_out", 8, 2), put(L, "n_words", 7, 7), ("n_words_beyond", 1, 2)),
    (D, put(L, "word_id", V), ("n_foreign", 1, 1)),
    (D, put(L, "word_id", -1), ("n_foreign", 1, 1)),  # perturbed, and nowhere
    (D, put(L, "word_id", 5, 2), ("n_foreign", 1, 1)),  # kept, and somewhere
    (put(D, "n_unprotected", 0), L, ("unprotected_gap", 1, 1)),
    # perturbed for nothing
    (put(D, "epsilon_spent", 6.5), put(L, "epsilon", 0.0), ("n_mispriced", 1, 1)),
    # kept at a price
    (put(D, "epsilon_spent", 0.1, 1), put(L, "epsilon", 0.1, 5), ("n_mispriced", 1, 1)),
    *((D, put(L, "epsilon", value, 6), ("n_mispriced", 1, 1)) for value in (-0.5, inf, nan, None)),
    (put(D, "epsilon_spent", 0.75, 2), put(L, "epsilon", 0.75, 6), ("epsilon_overrun", 1, 0.25)),
    # one of two texts
    (D, put(put(L, "epsilon", 3.5), "epsilon", 3.0, 4), ("epsilon_overrun", 1, pytest.approx(0.2))),
    (put(D, "epsilon_spent", 9.9), L, ("epsilon_difference", 1, pytest.approx(0.9 / 9.9))),
    (put(D, "epsilon_spent", None), L, ("epsilon_difference", 1, inf)),
]


@pytest.mark.parametrize(("written", "spent", "first"), DEFECTS)
def test_each_defect_stops(check, fault, written, spent, first):
    assert fault(lambda: check(written, spent, plan())) == first


def test_what_is_not_planned_and_nothing_at_all_stop(check, fault):
    assert fault(lambda: check(D, L, plan().drop(3))) == ("epsilon_overrun", 1, 0.5)
    assert fault(lambda: check(D.head(0), L.head(0), plan(), inputs().head(0))) == ("rows", 1, 0)


def test_defects_of_the_baseline_stop(check, fault):
    changed = put(clean_documents(), "text", "else", 2)
    assert fault(lambda: check(changed, clean_ledger())) == ("n_changed", 1, 1)
    spent = put(put(clean_ledger(), "epsilon", 0.5, 6), "action", "perturbed", 6)
    assert fault(lambda: check(put(clean_documents(), "epsilon_spent", 0.5, 2), spent)) == (
        "n_foreign",
        1,
        1,
    )


def test_each_rule_was_seen_to_fail():
    assert rules_of(output_suite("x", is_clean=True)) == {
        first for *_, (first, _, _) in DEFECTS
    } | {
        "rows",
        "n_changed",
    }
