"""The tokenizer: lossless, stable, the same for counting and for privatizing."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.text.tokenize import has_letters, is_punctuation, normal_form, sentence_spans, sentences, token_spans

# Text as people write it, and every character there is.
TEXTS = st.text(max_size=200) | st.text(alphabet="aB1 .,!?'’\"-_@#/:\n\t…é\u0301😀", max_size=200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I think, therefore I am", [["i", "think", ",", "therefore", "i", "am"]]),
        ("Hello, World. Bye!", [["hello", ",", "world", "."], ["bye", "!"]]),
        (
            "Dr. Smith met J. Jones. He left.",
            [["dr", ".", "smith", "met", "j", ".", "jones", "."], ["he", "left", "."]],
        ),
        ("So am I. Then what?", [["so", "am", "i", "."], ["then", "what", "?"]]),
        ("don't DON’T well-known", [["don't", "don't", "well-known"]]),
        ("one line\nanother line", [["one", "line"], ["another", "line"]]),
        ("He said “go.” Then left", [["he", "said", '"', "go", ".", '"'], ["then", "left"]]),
        ("in the U.S. for $3,000.50", [["in", "the", "u.s.", "for", "$", "3,000.50"]]),
        ("wait....... what?!", [["wait", "..."], ["what", "?", "!"]]),
        ("mail a_b@x.org, see https://a.b/c_d.", [["mail", "a＿b@x.org", ",", "see", "https://a.b/c＿d", "."]]),
        ("new_york", [["new", "＿", "york"]]),
        ("cafe\u0301 café", [["café", "café"]]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_examples(text: str, expected: list[list[str]]) -> None:
    assert sentences(text) == expected


@given(TEXTS)
def test_text_is_gaps_and_tokens(text: str) -> None:
    """Spans are in order, apart, not empty, and only white space stands between them."""
    end = 0
    for start, stop in (span for sentence in token_spans(text) for span in sentence):
        assert end <= start < stop
        assert text[end:start].strip() == ""
        assert not re.search(r"\s", text[start:stop])
        end = stop
    assert text[end:].strip() == ""


@given(TEXTS)
def test_counting_and_privatizing_see_the_same_tokens(text: str) -> None:
    seen = [[normal_form(text[start:end]) for start, end in sentence] for sentence in token_spans(text)]
    assert seen == sentences(text)


@given(TEXTS)
def test_a_normal_form_can_be_joined(text: str) -> None:
    """No white space and no underscore, so lines and collocations can be taken apart again."""
    for form in (form for sentence in sentences(text) for form in sentence):
        assert form.split() == [form]
        assert "_" not in form
        assert "\n" not in form


@given(TEXTS)
def test_sentences_cover_the_text(text: str) -> None:
    spans = list(sentence_spans(text))
    assert "".join(text[start:end] for start, end in spans) == text


@pytest.mark.parametrize(
    ("form", "expected"),
    [(",", True), ("...", True), ("$", True), ("a", False), ("😀", False), ("🏽", False), ("5", False)],
)
def test_punctuation(form: str, expected: bool) -> None:
    """A picture says something; it must not pass as punctuation, which may leave in clear."""
    assert is_punctuation(form) is expected


@pytest.mark.parametrize(("form", "expected"), [("a", True), ("5", True), ("█", False), (",", False)])
def test_letters(form: str, expected: bool) -> None:
    assert has_letters(form) is expected


@pytest.mark.parametrize("unit", ["a", "a.", "ab-", " ", ".", '."', "'", "_", "1.", "x@", "\n", "e\u0301"])
def test_long_runs_take_linear_work(unit: str) -> None:
    """100,000 repetitions would never end if matching were quadratic; here the answer is what counts."""
    text = unit * 100_000
    assert sum(end - start for sentence in token_spans(text) for start, end in sentence) == len("".join(text.split()))


SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "benchmarks"


@pytest.mark.skipif(not SHARED.exists(), reason="real texts are not beside the project")
def test_fifty_thousand_real_sentences() -> None:
    """Of every kind: reviews, tweets, transcripts, news, linguists' examples."""
    seen = 0
    for file in sorted(SHARED.glob("*.parquet")):
        texts = pq.read_table(file, columns=["text"]).column("text").to_pylist()
        for text in texts[:: max(1, len(texts) // 1200)]:
            spans, forms = token_spans(text), sentences(text)
            assert [[normal_form(text[start:end]) for start, end in sentence] for sentence in spans] == forms
            assert "".join(text[start:end] for sentence in spans for start, end in sentence) == "".join(text.split())
            seen += len(forms)
    assert seen > 50_000
