"""Privatized text gets ordinary English spacing, not the writer's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexveil.core.text.encode import Lexicon, encode
from lexveil.core.text.pieces import Pieces
from lexveil.core.text.render import render, render_in_layout

LEXICON = Lexicon.build("word", [], None)


def rendered(tokens, text_of, n_texts):
    half = len(tokens) // 2
    pieces = Pieces.joined(Pieces.of(tokens[:half]), Pieces.of(tokens[half:]))
    return [*render(pieces, np.arange(len(tokens), dtype=np.int32), text_of, n_texts)]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["hello", ",", "world", "."], "hello, world."),
        (['"', "i", "think", '"', ",", "he", "said"], '"i think", he said'),
        (["a", "(", "b", ")", "c"], "a (b) c"),
        (["$", "5", "/", "day"], "$5/day"),
        (["a＿b@x.org"], "a_b@x.org"),
        (["yes", "--", "no"], "yes -- no"),
        (
            ["l'", "qu'_il", "po'_di", "don't_know", "parce_qu'", "a"],
            "l'qu'il po' di don't know parce qu'a",
        ),
        ([], ""),
    ],
)
def test_spacing(tokens, expected):
    assert rendered(tokens, np.zeros(len(tokens), dtype=np.int32), 1) == [expected]


def test_texts_of_a_batch_do_not_touch():
    """An open quotation mark of one text must not turn the next one's."""
    tokens = ['"', "a", '"', "b", '"', ","]
    assert rendered(tokens, np.array([0, 0, 2, 2, 2, 3], dtype=np.int32), 4) == [
        '"a',
        "",
        '"b"',
        ",",
    ]


@given(st.text(alphabet="aB ,.\n\t\"'!", max_size=60))
def test_layout_is_kept_only_on_request(text):
    encoded = encode([text], LEXICON)
    tokens = [encoded.words[first] for first in encoded.first_word]
    kept = render_in_layout(tokens, encoded, [text])[0]
    assert "".join(kept.split()).lower() == "".join(tokens)
    assert [c for c in kept if c.isspace()] == [c for c in text if c.isspace()]
    two = encode(["Hello  WORLD,\nbye"], LEXICON)
    assert render_in_layout(["good", "day", ",", None], two, ["Hello  WORLD,\nbye"]) == [
        "Good  DAY,\n"
    ]
