"""Tokens that a model for export leaves out."""

import pytest

from lexveil.core.text.screens import Candidate, NameLists, has_slur, kept_within, unlike_a_word

NAMES = NameLists(
    first=frozenset({"john", "rose", "will", "tom"}),
    last=frozenset({"smith", "garden", "smithers", "hanks", "be"}),
    public=frozenset({"tom_hanks"}),
    capitalised={("john", "smith"): 40, ("rose", "garden"): 4, ("tom", "hanks"): 90},
)


LOOKS = {
    None: "please don't well-known u.s. café i_don't_know . -- customer_service naïve",
    "number or user name": "2013 tom92 top_10 x²",
    "address or user name": "@tom a@b.org https://a.b #fun_day",
    "other signs": "sooooo aaaaaaaaaaaaaaaaaaaaaaaaa 😀 a.b",
}


def test_what_is_no_word_is_named():
    assert {
        look: [unlike_a_word(token) for token in tokens.split()] for look, tokens in LOOKS.items()
    } == {look: [look] * len(tokens.split()) for look, tokens in LOOKS.items()}


def test_a_slur_is_found_in_every_form_and_place_and_plain_words_are_not():
    slurs = frozenset({"ass", "asses", "prick"})
    plain = frozenset({"assess"})
    for token in ("ass", "asses", "ass's", "pricks", "a_prick", "such_pricks_are"):
        assert has_slur(token, slurs, plain)
    for token in ("assess", "assessment", "pass", "we_assess", "prickle"):
        assert not has_slur(token, slurs, plain)


@pytest.mark.parametrize(
    ("token", "count", "is_name"),
    [
        ("john_smith", 50, True),  # capitals in 40 of 50
        ("john_smith's", 50, True),
        ("met_john_smith", 50, True),
        # mostly without capitals: in this corpus it means something else
        ("john_smith", 200, False),
        ("rose_garden", 50, False),
        ("will_be", 50, False),  # a stop word is no surname
        ("tom_hanks", 95, False),  # public
        ("saw_tom_hanks", 95, False),
        ("mr_smith", 50, True),  # a title and a surname need no capitals
        ("dr_smithers", 50, True),
        ("mr_president", 50, False),  # no surname
        ("smith", 50, False),
    ],
)
def test_a_full_name_is_told_by_lists_and_capitals(token, count, is_name):
    assert NAMES.in_name(token, count, 0.25) is is_name


def test_words_come_before_collocations_and_ties_are_decided_by_the_token():
    some = [
        Candidate("a_b", 9, 9),
        Candidate("c_d", 7, 7),
        Candidate("b", 1, 1),
        Candidate("a", 1, 1),
    ]
    assert [one.token for one in kept_within(some, 3)] == ["a_b", "a", "b"]
    assert kept_within(some[::-1], 3) == kept_within(some, 3)
    assert [one.token for one in kept_within(some, 1)] == ["a"]
