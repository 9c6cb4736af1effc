"""The user's lists: how they are read, and what of them is met in a text."""

import pytest

from lexveil.base.errors import RequestError
from lexveil.core.detectors.detection import Detection
from lexveil.core.detectors.given import GivenSpan, given_spans
from lexveil.core.detectors.lists import LISTED, Phrases
from lexveil.core.text.spans import Span
from tests.text.test_spans import words_of

LIST = ["Acme", "", "[PERSON]", "Ann Lee", "  Roy ", "[project]", "blue  SKY"]


def met(text, *lines):
    spans = Phrases.of(lines or LIST, "list").spans(words_of(text))
    return sorted((text[span.start : span.end], span.type) for _, span in spans)


def test_headings_name_types_and_capitals_and_white_space_make_no_difference():
    found = met("ACME hired ann\n LEE for Blue Sky.")
    assert found == [("ACME", LISTED), ("Blue Sky", "PROJECT"), ("ann\n LEE", "PERSON")]


def test_a_word_is_met_with_a_possessive_s_and_in_a_word_with_hyphens_and_not_in_another_word():
    found = met("Roy's Lee-Roy, Ann Lee's royal")
    assert found == [("Ann Lee's", "PERSON"), ("Lee-Roy", "PERSON"), ("Roy's", "PERSON")]


def test_a_phrase_does_not_run_from_a_text_into_the_next():
    assert not list(Phrases.of(["ann lee"], "list").spans(words_of("Ann", "Lee")))


def test_allowed_words_are_whole():
    covered = Phrases.of(["roy"], "list").covered(words_of("Roy Lee-Roy Roy's"))
    assert covered.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "the list has no entry"),
        (["[]"], "1: the heading is not a valid"),
        (["a", " [X"], "2: the heading has no closing"),
        (["a", "[X]", "A"], "two headings"),
    ],
)
def test_lists_that_are_refused(lines, message):
    with pytest.raises(RequestError, match=message):
        Phrases.of(lines, "list")


def test_an_entry_on_both_lists_is_refused():
    with pytest.raises(RequestError, match="in common"):
        Detection(protect=Phrases.of(["a", "b"], ""), allow=Phrases.of(["B"], "")).check()


SPAN = {"start": 0, "end": 3, "type": "person"}


@pytest.mark.parametrize(
    "value", [[SPAN], [Span(0, 3, "PERSON")], '[{"start": 0, "end": 3, "type": "PERSON"}]']
)
def test_spans_that_come_with_a_text(value):
    assert given_spans(value, ["Ann is"], ["text"], "here") == [GivenSpan(0, Span(0, 3, "PERSON"))]


def test_spans_of_several_columns_and_none():
    both = [None, "Ann"], ["a", "b"], "here"
    assert given_spans([SPAN | {"column": "b"}], *both) == [GivenSpan(1, Span(0, 3, "PERSON"))]
    assert [given_spans(value, *both) for value in (None, "", [], "[]", "null")] == [[]] * 5


@pytest.mark.parametrize(
    ("value", "columns", "message"),
    [
        ("[{", ["a"], "not valid JSON"),
        ({"start": 0}, ["a"], "not a list of spans"),
        ([{"start": 0, "end": 3}], ["a"], "span 1: a span must have start"),
        ([SPAN | {"text": "Ann"}], ["a"], "must have start"),
        ([SPAN | {"start": True}], ["a"], "whole numbers"),
        ([SPAN | {"end": 7}], ["a"], "outside its text"),
        ([SPAN | {"end": 0}], ["a"], "outside its text"),
        ([SPAN | {"start": -1}], ["a"], "outside its text"),
        ([SPAN | {"type": "Ann Lee"}], ["a"], "the type of the span is not a name"),
        ([SPAN], ["a", "b"], "has no column"),
        ([SPAN | {"column": "c"}], ["a", "b"], "not one of the text columns"),
    ],
)
def test_spans_that_are_refused_name_the_place_and_quote_nothing(value, columns, message):
    with pytest.raises(RequestError, match=f"row 7.*{message}") as refusal:
        given_spans(value, ["Ann is"] * len(columns), columns, "row 7")
    assert "Ann" not in str(refusal.value)
