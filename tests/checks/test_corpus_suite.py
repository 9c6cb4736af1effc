"""The corpus suite through its SQL: sound tables pass, and each single defect stops the stage with its own message."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest

from lexveil.config import NO_BASE, parse_params
from lexveil.runtime import duckdb_session
from tasks import check_corpus
from tests.checks.conftest import SECRET

SAMPLE = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
TOKENS = pa.schema([("doc_id", pa.string()), ("sentence_id", pa.int32()), ("ids", pa.list_(pa.int32()))])
WORDS = pa.schema([("word_id", pa.int32()), ("word", pa.string())])
VOCABULARY = ["hello", SECRET, ".", "bye", "again"]


def sample() -> pd.DataFrame:
    texts = [f"Hello {SECRET}. Bye.", f"{SECRET} again", " \n\t"]
    return pd.DataFrame({"doc_id": ["a", "b", "c"], "text": texts}, dtype=object)


def sentences() -> pd.DataFrame:
    rows = [("a", 0, [0, 1, 2]), ("a", 1, [3, 2]), ("b", 0, [1, 4])]
    return pd.DataFrame(rows, columns=["doc_id", "sentence_id", "ids"], dtype=object)


def words(*vocabulary: str | None) -> pd.DataFrame:
    vocabulary = vocabulary or tuple(VOCABULARY)
    return pd.DataFrame({"word_id": range(len(vocabulary)), "word": pd.Series(vocabulary, dtype=object)})


def row(frame: pd.DataFrame, *values: object) -> pd.DataFrame:
    return pd.concat([frame, pd.DataFrame([values], columns=frame.columns, dtype=object)], ignore_index=True)


def put(frame: pd.DataFrame, at: int, column: str, value: object) -> pd.DataFrame:
    frame.at[at, column] = value
    return frame


@pytest.fixture
def check(write, docs, out, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _check(sample: pd.DataFrame, sentences: pd.DataFrame, words: pd.DataFrame = words(), base: str = NO_BASE):  # noqa: B008
        for file, table, schema in (("sample", sample, SAMPLE), ("tokens", sentences, TOKENS), ("words", words, WORDS)):
            write(f"artifacts/corpus/{file}.parquet", table, schema)
        params = parse_params({"seed": 1, "embeddings": {"base": base}}).model_copy(update={"machine": machine})
        return check_corpus.run(params, out, docs)

    return _check


def test_sound_tables_pass_with_a_blank_document(check, out):
    summary = check(sample(), sentences())
    assert summary == {"n_documents": 3, "n_blank_documents": 1, "n_sentences": 3, "n_tokens": 7}
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["success"] is True
    assert record["suite"] == "corpus"
    assert record["summary"] == summary
    assert {one["unexpected"] for one in record["expectations"]} == {0}
    assert SECRET not in out.read_text(encoding="utf-8")


def test_the_same_tables_give_the_same_bytes(check, out):
    check(sample(), sentences())
    once = out.read_bytes()
    check(sample(), sentences())
    assert out.read_bytes() == once


UNSPLITTABLE = (
    r"1 of 3 documents have sentences with a token that is empty or contains '_' or white space "
    r"\(up to 1 sentences, limit 0\)"
)
DEFECTS = {
    "no document": (sample().head(0), sentences().head(0), "has no document, at least 1"),
    "no token": (put(sample().tail(1), 2, "text", "\u3000"), sentences().head(0), "no token between them, at least 1"),
    "same id twice": (row(sample(), "a", "else"), sentences(), r"2 of 4 documents share their doc_id .* limit 1 each"),
    "no id": (row(sample(), None, "\n"), sentences(), "1 of 4 documents have no value in doc_id"),
    "stray sentence": (
        sample(),
        row(sentences(), "d", 0, [0]),
        r"1 of 4 documents have sentences but are not in the sample \(up to 1 sentences, limit 0\)",
    ),
    "no text": (put(sample(), 2, "text", None), sentences(), "1 of 3 documents have no text, limit 0"),
    "no tokens": (sample(), sentences().head(2), "1 of 3 documents have text but no token, limit 0"),
    "sentence twice": (sample(), row(sentences(), "b", 0, [0]), "1 of 3 documents have repeated or missing sentence"),
    "sentence missing": (sample(), row(sentences(), "b", 2, [0]), "1 of 3 documents have repeated or missing sentence"),
    "repeats that add up": (
        sample(),
        pd.concat([sentences().head(2), pd.DataFrame({"doc_id": "b", "sentence_id": [0, 0, 3, 3], "ids": [[0]] * 4})]),
        "1 of 3 documents have repeated or missing sentence",
    ),
    **{f"sentence {ids!r}": (sample(), put(sentences(), 1, "ids", ids), UNSPLITTABLE) for ids in [[], None]},
    **{
        f"number {ids!r}": (
            sample(),
            put(sentences(), 1, "ids", ids),
            r"1 of 3 documents have sentences with a number that artifacts/corpus/words.parquet does not have "
            r"\(up to 1 sentences, limit 0\)",
        )
        for ids in [[3, 5], [-1, 2], [3, None]]
    },
}
WORDS_AMISS = ["new_york", "a b", " a", "a ", "", "a\u00a0b", "a\u2028b", "a\x1cb", None]


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_stops(check, stops, defect):
    sampled, cut, saying = DEFECTS[defect]
    stops(lambda: check(sampled, cut), "^corpus: .*" + saying)


def test_white_space_is_what_python_splits_at(write):
    """Training splits lines with str.split, so SQL and Python have to agree on every character."""
    # Beyond U+3000 Python knows no white space; the loop says so rather than assuming it.
    assert not any(chr(code).isspace() for code in range(0x3001, 0x110000))
    characters = [chr(code) for code in range(1, 0x3002)]
    sampled = write("s.parquet", pd.DataFrame({"doc_id": characters, "text": characters}), SAMPLE)
    cut = {"doc_id": characters, "sentence_id": 0, "ids": [[number] for number in range(len(characters))]}
    with duckdb_session.session() as con:
        duckdb_session.view(con, "sample", sampled)
        duckdb_session.view(con, "tokens", write("t.parquet", pd.DataFrame(cut), TOKENS))
        duckdb_session.view(con, "words", write("w.parquet", words(*(f"a{c}b" for c in characters)), WORDS))
        totals = duckdb_session.run(con, "checks/corpus_totals").df().set_index("doc_id")
    readable = set(totals.index[totals["is_readable"] == 1])
    assert readable == {c for c in characters if not c.isspace()}
    unsplittable = set(totals.index[totals["n_unsplittable"] > 0])
    assert unsplittable == {c for c in characters if c.isspace()} | {"_"}
    assert set(totals["n_unnumbered"]) == {0}


@pytest.mark.parametrize("word", WORDS_AMISS)
def test_a_word_that_cannot_be_joined_stops_its_documents(check, stops, word):
    stops(lambda: check(sample(), sentences(), words("hello", SECRET, ".", word, "again")), "^corpus: " + UNSPLITTABLE)


def test_words_numbered_twice_stop(check, stops):
    twice = put(words(), 4, "word_id", 3)
    stops(lambda: check(sample(), sentences(), twice), "^corpus: 2 of 3 documents have sentences with a number that")


def test_a_base_may_take_the_place_of_all_documents(check, out):
    assert check(sample()[:0], sentences()[:0], words()[:0], base="en")["n_documents"] == 0
    assert json.loads(out.read_text(encoding="utf-8"))["success"] is True
