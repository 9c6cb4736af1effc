"""The tokenizer by examples; test_scanner.py compares it with regular expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.text.normal_forms import has_letters, is_punctuation
from lexveil.text.tokenize import sentences

# Text as people write it, and every character there is.
ANY = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(ANY, max_size=200) | st.text(alphabet="aB1 .,!?'’\"-_@#/:\n\t…é\u0301😀", max_size=200)


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
def test_a_normal_form_can_be_joined(text: str) -> None:
    """No white space and no underscore, so lines and collocations can be taken apart again."""
    for form in (form for sentence in sentences(text) for form in sentence):
        assert form.split() == [form]
        assert "_" not in form
        assert "\n" not in form


def test_kinds_of_forms() -> None:
    """A picture says something; it must not pass as punctuation, which may leave in clear."""
    assert [form for form in (",", "...", "$", "a", "😀", "🏽", "5", "█") if is_punctuation(form)] == [",", "...", "$"]
    assert [form for form in ("a", "5", "█", ",") if has_letters(form)] == ["a", "5"]
