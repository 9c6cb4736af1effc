"""The corpus suite through its SQL: sound tables pass, and each single defect stops the stage with
its own message."""

import json

import pandas as pd
import pyarrow as pa
import pytest

from lexveil.io.config import NO_BASE, parse_params
from lexveil.io.execution import duckdb_session
from lexveil.lab.checks.corpus_suite import corpus_suite
from tasks import check_corpus
from tests.checks.conftest import SECRET, add, put, rules_of

SAMPLE = pa.schema([("doc_id", pa.string()), ("text", pa.string())])
TOKENS = pa.schema(
    [("doc_id", pa.string()), ("sentence_id", pa.int32()), ("ids", pa.list_(pa.int32()))]
)
WORDS = pa.schema([("word_id", pa.int32()), ("word", pa.string())])
VOCABULARY = ["hello", SECRET, ".", "bye", "again"]


def sample():
    texts = [f"Hello {SECRET}. Bye.", f"{SECRET} again", " \n\t"]
    return pd.DataFrame({"doc_id": ["a", "b", "c"], "text": texts}, dtype=object)


def sentences():
    rows = [("a", 0, [0, 1, 2]), ("a", 1, [3, 2]), ("b", 0, [1, 4])]
    return pd.DataFrame(rows, columns=["doc_id", "sentence_id", "ids"], dtype=object)


def words(*vocabulary):
    vocabulary = vocabulary or tuple(VOCABULARY)
    return pd.DataFrame(
        {"word_id": range(len(vocabulary)), "word": pd.Series(vocabulary, dtype=object)}
    )


@pytest.fixture
def check(write, docs, out, machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _check(
        sample,
        sentences,
        words=words(),  # noqa: B008
        base=NO_BASE,
    ):
        for file, table, schema in (
            ("sample", sample, SAMPLE),
            ("tokens", sentences, TOKENS),
            ("words", words, WORDS),
        ):
            write(f"artifacts/corpus/{file}.parquet", table, schema)
        params = parse_params({"seed": 1, "embeddings": {"base": base}})
        return check_corpus.run(params, machine, out, docs)

    return _check


def test_sound_tables_pass(check, out):
    """Sound tables pass, even with a blank document, which has no token."""
    summary = check(sample(), sentences())
    assert summary == {"n_documents": 3, "n_blank_documents": 1, "n_sentences": 3, "n_tokens": 7}
    content = out.read_text(encoding="utf-8")
    record = json.loads(content)
    assert (record["success"], record["suite"], record["summary"]) == (True, "corpus", summary)
    assert {one["unexpected"] for one in record["expectations"]} == {0}
    assert SECRET not in content


# whose sums are those of 0 to 3
REPEATS = pd.DataFrame({"doc_id": "b", "sentence_id": [0, 0, 3, 3], "ids": [[0]] * 4})
DEFECTS = [
    (sample().head(0), sentences().head(0), ("rows", 1, 0)),
    (put(sample().tail(1), "text", "\u3000", 2), sentences().head(0), ("n_tokens", 1, 0)),
    (add(sample(), "a", "else"), sentences(), ("doc_id", 2, 2)),
    (add(sample(), None, "\n"), sentences(), ("n_missing", 1, 1)),
    (sample(), add(sentences(), "d", 0, [0]), ("n_strays", 1, 1)),
    (put(sample(), "text", None, 2), sentences(), ("lacks_text", 1, 1)),
    (sample(), sentences().head(2), ("lacks_tokens", 1, 1)),
    (sample(), add(sentences(), "b", 0, [0]), ("is_misnumbered", 1, 1)),
    (sample(), add(sentences(), "b", 2, [0]), ("is_misnumbered", 1, 1)),
    (sample(), pd.concat([sentences().head(2), REPEATS]), ("is_misnumbered", 1, 1)),
    *((sample(), put(sentences(), "ids", ids, 1), ("n_unsplittable", 1, 1)) for ids in ([], None)),
    *(
        (sample(), put(sentences(), "ids", ids, 1), ("n_unnumbered", 1, 1))
        for ids in ([3, 5], [-1, 2], [3, None])
    ),
]


@pytest.mark.parametrize(("sampled", "cut", "first"), DEFECTS)
def test_each_defect_stops(check, fault, sampled, cut, first):
    assert fault(lambda: check(sampled, cut)) == first


def test_each_rule_was_seen_to_fail():
    assert rules_of(corpus_suite()) <= {first for *_, (first, _, _) in DEFECTS}


def test_white_space_is_what_python_splits_at(write):
    """Training splits lines with str.split, so SQL and Python have to agree on every character."""
    # Beyond U+3000 Python knows no white space; the loop says so rather than assuming it.
    assert not any(chr(code).isspace() for code in range(0x3001, 0x110000))
    characters = [chr(code) for code in range(1, 0x3002)]
    sampled = write("s.parquet", pd.DataFrame({"doc_id": characters, "text": characters}), SAMPLE)
    cut = {
        "doc_id": characters,
        "sentence_id": 0,
        "ids": [[number] for number in range(len(characters))],
    }
    with duckdb_session.session() as con:
        duckdb_session.view(con, "sample", sampled)
        duckdb_session.view(con, "tokens", write("t.parquet", pd.DataFrame(cut), TOKENS))
        duckdb_session.view(
            con, "words", write("w.parquet", words(*(f"a{c}b" for c in characters)), WORDS)
        )
        totals = duckdb_session.run(con, "checks/corpus_totals").df().set_index("doc_id")
    readable = set(totals.index[totals["is_readable"] == 1])
    assert readable == {c for c in characters if not c.isspace()}
    unsplittable = set(totals.index[totals["n_unsplittable"] > 0])
    assert unsplittable == {c for c in characters if c.isspace()} | {"_"}
    assert set(totals["n_unnumbered"]) == {0}


def test_words_numbered_twice_stop(check, fault):
    assert fault(lambda: check(sample(), sentences(), put(words(), "word_id", 3, 4))) == (
        "n_unnumbered",
        2,
        2,
    )


def test_a_base_may_take_the_place_of_all_documents(check, out):
    assert check(sample()[:0], sentences()[:0], words()[:0], base="en")["n_documents"] == 0
    assert json.loads(out.read_text(encoding="utf-8"))["success"] is True
