"""The suite of releases through its SQL: a sound release passes, and each single defect stops it with its own words."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import duckdb
import pandas as pd
import pytest

from lexveil.artifacts.data_docs import DataDocs
from lexveil.checks.release_suite import PERSONAL, release_suite, source_suite
from lexveil.checks.validation import validate
from lexveil.errors import CheckFailed
from lexveil.runtime import duckdb_session

BUDGET = 10.0
SAID = {"budget": BUDGET, "spent_most": 10.0, "spent_mean": 8.0}
OUTPUTS = [(1, "uno dos tres, cuatro"), (2, "cinco")]
TOKENS = [(1, 4.0), (1, 6.0), (1, 0.0), (1, 0.0), (2, 6.0)]


@pytest.fixture
def frame():
    def _frame(outputs: Any = OUTPUTS, tokens: Any = TOKENS, **said: float) -> Any:
        with duckdb.connect() as con:
            con.execute("create table outputs (row bigint, text varchar)")
            con.execute("create table tokens (row bigint, epsilon double)")
            con.executemany("insert into outputs values (?, ?)", outputs)
            con.executemany("insert into tokens values (?, ?)", tokens)
            return duckdb_session.run(con, "release/documents", **(SAID | said), **PERSONAL).df()

    return _frame


def test_what_the_query_says_by_hand(frame) -> None:
    first, second = frame().to_dict("records")
    assert (first["n_tokens"], first["n_words_out"], first["length_ratio"]) == (4, 4, 1.0)
    assert (first["epsilon_spent"], second["epsilon_spent"]) == (10.0, 6.0)
    assert first["epsilon_overrun"] == 0.0 and second["epsilon_overrun"] == pytest.approx(-0.4)
    assert first["mean_gap"] == first["most_gap"] == 0.0


def test_a_text_that_is_not_there_has_no_words_and_no_tokens(frame) -> None:
    rows = frame([*OUTPUTS, (3, None)], spent_mean=16 / 3)
    assert rows["epsilon_spent"].tolist() == [10.0, 6.0, 0.0]
    assert rows["length_ratio"].tolist() == [1.0, 1.0, 0.0] and not rows.isna().any(axis=None)


SUITE: dict[str, Any] = {"max_length_ratio": 1.0, "personal": True}


def judge(docs: DataDocs, rows: Any, **limits: Any) -> None:
    validate("releases/x", release_suite(**(SUITE | limits)), rows, docs)


def test_a_sound_release_passes(frame, docs: DataDocs) -> None:
    judge(docs, frame())


@pytest.mark.parametrize(
    ("given", "limits", "says"),
    [
        ({"budget": 9.0}, {}, r"1 of 2 documents spend more than the budget \(epsilon_overrun up to 0\.111"),
        ({"spent_most": 9.0}, {}, "another most of epsilon spent than the token log"),
        ({"spent_mean": 7.0}, {}, "another mean of epsilon spent than the token log"),
        ({"outputs": [*OUTPUTS, (None, "seis")]}, {}, "1 documents are stray"),
        ({"tokens": [*TOKENS, (7, 0.0)]}, {}, "1 tokens of the token log belong to no"),
        ({}, {"max_length_ratio": 0.9}, r"2 of 2 documents become longer than the limit \(up to 1\.00 words"),
    ],
)
def test_each_defect_stops_it(frame, docs: DataDocs, given: Any, limits: Any, says: str) -> None:
    with pytest.raises(CheckFailed, match=says) as caught:
        judge(docs, frame(**given), **limits)
    assert "Nothing was released" in str(caught.value) and "uno" not in str(caught.value)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ((0.8, 0.2), None),
        ((0.81, None), r"knows 80\.0% of the words, the limit is 81\.0%"),
        ((None, 0.1), r"16\.7% of the tokens are unprotected, the limit is 10\.0%"),
        ((None, None), None),
    ],
)
def test_a_source_is_judged_before_anything_is_spent(docs: DataDocs, limits: Any, says: str | None) -> None:
    numbers = pd.DataFrame([{"release": "x", "coverage": 0.8, "unprotected_share": 1 / 6}])
    with pytest.raises(CheckFailed, match=says) if says else contextlib.nullcontext() as caught:
        validate("releases/x", source_suite(*limits), numbers, docs)
    assert says is None or "nothing was spent" in str(caught.value)


LOOKS_LIKE = [
    ("n_emails", "an e-mail address", ["jo.doe@example.org", "jo @ example . org"], ["jo at example", "a @ b"]),
    (
        "n_phones",
        "a telephone number",
        ["+43 660 1234567", "(0316) 873 1234", "555-123-4567", "+1 ( 555 ) 123"],
        ["in 1990 2000", "1,200", "12 34", "9-11", "2024-05"],
    ),
    ("n_numbers", "6 digits or more in a row", ["123456", "a1234567b"], ["12345", "123 456"]),
    ("n_handles", "an @name", ["@jo_doe", "hi @jo"], ["jo@example.org", "a @ b"]),
    ("n_urls", "a web address", ["https://x.org", "http : / / x", "www.x.org", "WWW . x . org"], ["the web", "www"]),
]


@pytest.mark.parametrize(("column", "said", "hits", "misses"), LOOKS_LIKE)
def test_what_looks_like_personal_data(
    frame, docs: DataDocs, column: str, said: str, hits: list[str], misses: list[str]
) -> None:
    for text in hits:
        rows = frame(outputs=[(1, f"uno {text} dos"), (2, "x")])
        assert rows[column].tolist() == [1, 0], text
    for text in misses:
        assert frame(outputs=[(1, f"uno {text} dos"), (2, "x")])[column].tolist() == [0, 0], text
    only = frame(outputs=[(1, hits[0]), (2, "x")])
    for other in LOOKS_LIKE:
        if other[0] != column:
            only[other[0]] = 0
    with pytest.raises(CheckFailed, match=re.escape(f"1 of 2 documents hold what looks like {said}")) as caught:
        judge(docs, only, max_length_ratio=None)
    assert hits[0] not in str(caught.value)
    judge(docs, only, max_length_ratio=None, personal=False)
