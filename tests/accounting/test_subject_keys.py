"""Subject keys: spellings that are one subject, and spellings that are not."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.core.accounting.subject_keys import (
    NearCollisions,
    keys_of_client,
    subject_key,
    text_keys,
)

SAME = [
    ["c7", "c7 ", "\tc7", "c7\u00a0", "c\u200b7", "ｃ７", "\ufeffc7"],
    [
        "c7",
        "c7\ufe0f",
        "c\u034f7",
        "c7\u3164",
        "c7\uffa0",
        "\u115fc7",
        "c7\u180b",
        "c7\U000e0100",
        "c\x807",
    ],
    ["Zoë Müller", unicodedata.normalize("NFD", "Zoë Müller"), "Zoë  Müller", "Zoë\u3000Müller"],
    ["7", "7.0", "7.00", " 7 ", "７"],
    ["0", "-0", "0.0", "-0.00"],
    ["-1.5", "-1.50"],
    ["0.0000001", "0.00000010"],
]
DIFFERENT = [
    "c7",
    "C7",
    "c-7",
    "7",
    "007",
    "+7",
    "7.",
    ".7",
    "7e0",
    "-7",
    "7.01",
    "70",
    "true",
    "True",
    "2020-01-01",
]


@pytest.mark.parametrize("names", SAME)
def test_spellings_of_one_subject(names):
    assert {subject_key(name) for name in names} == {names[0]}


def test_subjects_that_are_others():
    assert [subject_key(name) for name in DIFFERENT] == DIFFERENT
    assert subject_key(" \u200b") == ""


TEXT = "The market, in New York: don't! Café."


def test_spellings_of_one_text():
    rows = [
        TEXT,
        f"\t{TEXT}\n",
        TEXT.upper(),
        unicodedata.normalize("NFD", TEXT),
        TEXT.replace(" ", "\u00a0 "),
        TEXT.replace("'", "’"),
        f"\ufeff{TEXT}\u200b",
        TEXT.replace("N", "\U0001d40d"),
        TEXT.replace("k", "k\ufe0f\u034f"),
        f"{TEXT}\u3164",
    ]
    assert len(set(text_keys([[row] for row in rows]))) == 1
    assert text_keys([["http://A.de was open"]]) == text_keys([["HTTP://a.DE was open"]])


def test_a_column_without_tokens_is_no_other_text():
    """Null, empty or not there: the engine sees the same, and a text would have a budget for
    each."""
    rows = [["the market", *nothing] for nothing in ([None], [""], [" "], ["\u200b"])]
    assert {*text_keys(rows), *text_keys([row[::-1] for row in rows])} == {
        *text_keys([["the market"]])
    }


def test_what_unicode_says_shows_nothing_shows_nothing():
    """DerivedCoreProperties-15.1.0.txt: Default_Ignorable_Code_Point; and what this Python knows to
    be Cf."""
    ignorable = [
        (0xAD, 0xAD),
        (0x34F, 0x34F),
        (0x61C, 0x61C),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x200B, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0),
        (0xFFF0, 0xFFF8),
        (0x1BCA0, 0x1BCA3),
        (0x1D173, 0x1D17A),
        (0xE0000, 0xE0FFF),
    ]
    points = {point for first, last in ignorable for point in range(first, last + 1)}
    points |= {point for point in range(0x110000) if unicodedata.category(chr(point)) == "Cf"}
    assert {subject_key(f"c{chr(point)}7") for point in points} == {"c7"}
    assert {*text_keys([[f"c{chr(point)}7"] for point in sorted(points)])} == {*text_keys([["c7"]])}


def test_texts_that_are_others():
    rows = [[TEXT, None], [TEXT, TEXT], [None, None], ["the marketing", None], ["themarket", None]]
    rows += [["the market", None], ["the market!", None], ["the", "market"]]
    assert len(set(text_keys(rows))) == len(rows)
    assert text_keys(rows) == [key for row in rows for key in text_keys([row])]
    assert text_keys([]) == [] and all(key.startswith("\0text:") for key in text_keys(rows))


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
        max_size=4,
    )
)
def test_keys_are_stable(texts):
    assert [subject_key(subject_key(text)) for text in texts] == [
        subject_key(text) for text in texts
    ]
    assert text_keys([[text] for text in texts]) == text_keys(
        [[f" {text}\u200b"] for text in texts]
    )


def test_near_namesakes_are_counted():
    near = NearCollisions()
    for chunk in (["c7", "c-7", "ben"], ["C7", "ben", "c7"], ["Ana", "7", "7.0"]):
        near.add([subject_key(name) for name in chunk])
    assert near.count() == 3  # c7, c-7, C7


def test_no_two_clients_share_a_key_of_a_name_or_of_a_text():
    """The keys differ even if a client and a subject have the same name, or a name reads like the
    key of a text."""
    names = ["7", "b/7", "/7", "text:7", "b"]
    keys = [*names, *text_keys([["a fire"], ["another"], [None]])]
    clients = ["a", "b", "a.b", "text:a"]
    made = [key for client in clients for key in keys_of_client(client, keys)]
    assert len(set(made)) == len(clients) * len(keys)
    assert not set(made) & {*keys[len(names) :]}
    of_texts = keys_of_client("a", keys)[len(names) :]
    assert all(key.startswith("\0") for key in of_texts)


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (["2020-01-02", "2020-01-02T00:00:00", "2020-01-02 00:00", "2020-01-02T00:00:00.000"], ""),
        (["2020-01-02T10:00:00", "2020-01-02 10:00", "2020-01-02 10:00:00.0"], "T10:00:00"),
        (["2020-01-02T00:00:00Z", "2020-01-02 00:00+0000"], "T00:00:00+00:00"),
        (["2020-01-02T10:00:00.5", "2020-01-02 10:00:00.500000"], "T10:00:00.5"),
    ],
)
def test_a_day_and_a_time_have_one_form(names, key):
    assert {subject_key(name) for name in names} == {f"2020-01-02{key}"}


def test_times_that_are_others():
    others = ["2020-01-02", "2020-01-02T00:00:01", "2020-01-02T00:00:00+01:00", "00:00:00"]
    assert [subject_key(name) for name in others] == others
