"""The suite of releases through its SQL: a sound release passes, and each single defect stops it
with its own words."""

import duckdb
import pandas as pd
import pytest

from lexveil.io.execution import duckdb_session
from lexveil.release.checks.release_suite import PERSONAL, release_suite, source_suite
from tests.checks.conftest import first_fault, rules_of

BUDGET = 10.0
SAID = {"budget": BUDGET, "spent_most": 10.0, "spent_mean": 8.0}
OUTPUTS = [(1, "uno dos tres, cuatro"), (2, "cinco")]
TOKENS = [(1, 4.0), (1, 6.0), (1, 0.0), (1, 0.0), (2, 6.0)]


@pytest.fixture
def frame():
    def _frame(outputs=OUTPUTS, tokens=TOKENS, **said):
        with duckdb.connect() as con:
            con.execute("create table outputs (row bigint, text varchar)")
            con.execute("create table tokens (row bigint, epsilon double)")
            if outputs:
                con.executemany("insert into outputs values (?, ?)", outputs)
            con.executemany("insert into tokens values (?, ?)", tokens)
            return duckdb_session.run(con, "release/documents", **(SAID | said), **PERSONAL).df()

    return _frame


def test_what_the_query_says_by_hand(frame):
    first, second = frame().to_dict("records")
    assert (first["n_tokens"], first["n_words_out"], first["length_ratio"]) == (4, 4, 1.0)
    assert (first["epsilon_spent"], second["epsilon_spent"]) == (10.0, 6.0)
    assert first["epsilon_overrun"] == 0.0 and second["epsilon_overrun"] == pytest.approx(-0.4)
    assert first["mean_gap"] == first["most_gap"] == 0.0

    # A text that is not there has no words and no tokens.
    rows = frame([*OUTPUTS, (3, None)], spent_mean=16 / 3)
    assert rows["epsilon_spent"].tolist() == [10.0, 6.0, 0.0]
    assert rows["length_ratio"].tolist() == [1.0, 1.0, 0.0] and not rows.isna().any(axis=None)


SUITE = {"max_length_ratio": 1.0, "personal": True}


def judge(rows, **limits):
    return first_fault(release_suite(**(SUITE | limits)), rows)


DEFECTS = [
    ({"outputs": []}, {}, ("rows", 1, 0)),
    ({"outputs": [*OUTPUTS, OUTPUTS[0]]}, {}, ("row", 2, 2)),
    ({"budget": 9.0}, {}, ("epsilon_overrun", 1, pytest.approx(1 / 9))),
    ({"spent_most": 9.0}, {}, ("most_gap", 2, pytest.approx(1 / 9))),
    ({"spent_mean": 7.0}, {}, ("mean_gap", 2, pytest.approx(1 / 7))),
    ({"outputs": [*OUTPUTS, (None, "seis")]}, {}, ("n_stray", 2, 1)),
    ({"tokens": [*TOKENS, (7, 0.0)]}, {}, ("n_stray_tokens", 2, 1)),
    ({}, {"max_length_ratio": 0.9}, ("length_ratio", 2, 1.0)),
]


@pytest.mark.parametrize(("given", "limits", "first"), DEFECTS)
def test_each_defect_stops_it(frame, given, limits, first):
    assert judge(frame()) is None
    assert judge(frame(**given), **limits) == first


def test_each_rule_was_seen_to_fail():
    seen = {first for *_, (first, _, _) in DEFECTS} | {column for column, *_ in LOOKS_LIKE}
    assert rules_of(release_suite(**SUITE)) == seen


def test_what_is_counted_of_a_source():
    numbers = pd.DataFrame([{"release": "x", "coverage": 0.8, "unprotected_share": 1 / 6}])
    assert first_fault(source_suite(0.81, None), numbers) == ("coverage", 1, 0.8)
    assert (
        first_fault(source_suite(0.8, 0.2), numbers)
        == first_fault(source_suite(None, None), numbers)
        is None
    )
    assert first_fault(source_suite(None, 0.1), numbers) == (
        "unprotected_share",
        1,
        pytest.approx(1 / 6),
    )


LOOKS_LIKE = [
    ("n_emails", ["jo.doe@example.org", "jo @ example . org"], ["jo at example", "a @ b"]),
    (
        "n_phones",
        ["+43 660 1234567", "(0316) 873 1234", "555-123-4567", "+1 ( 555 ) 123"],
        ["in 1990 2000", "1,200"],
    ),
    ("n_numbers", ["123456", "a1234567b"], ["12345", "123 456"]),
    ("n_handles", ["@jo_doe", "hi @jo"], ["jo@example.org", "a @ b"]),
    ("n_urls", ["https://x.org", "http : / / x", "www.x.org", "WWW . x . org"], ["the web", "www"]),
]


@pytest.mark.parametrize(("column", "hits", "misses"), LOOKS_LIKE)
def test_what_looks_like_personal_data(frame, column, hits, misses):
    for text in hits:
        rows = frame(outputs=[(1, f"uno {text} dos"), (2, "x")])
        assert rows[column].tolist() == [1, 0], text
    for text in misses:
        assert frame(outputs=[(1, f"uno {text} dos"), (2, "x")])[column].tolist() == [0, 0], text
    only = frame(outputs=[(1, hits[0]), (2, "x")]).assign(
        **{other: 0 for other, *_ in LOOKS_LIKE if other != column}
    )
    assert judge(only, max_length_ratio=None) == (column, 1, 1)
    assert judge(only, max_length_ratio=None, personal=False) is None
