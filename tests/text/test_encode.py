"""Texts as arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Lexicon, TokenClass, encode
from lexveil.text.normal_forms import normal_form
from tests.text.reference_tokenizer import token_spans

TOKENS = ["the", "new_york", "is", "big", ",", "york", "new"]
COLLOCATIONS = Collocations.build(
    [["new", "york"], ["york", "is"]], np.array([5.0, 2.0]), [["york"], ["is"], ["big"]], np.array([9.0])
)


def test_tokens_of_a_batch() -> None:
    lexicon = Lexicon.build("gst", TOKENS, COLLOCATIONS)
    encoded = encode(["New York, Smith!", "", "the york is big"], lexicon)
    assert encoded.text_of.tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
    assert [TOKENS[row] if row >= 0 else None for row in encoded.rows.tolist()] == [
        "new_york", ",", None, None, "the", "york", "is", "big",
    ]  # fmt: skip
    assert [TokenClass(kind).label for kind in encoded.kind] == [
        "word", "punctuation", "oov", "punctuation", "stopword", "word", "stopword", "word",
    ]  # fmt: skip
    assert encoded.n_words.tolist() == [2, 1, 1, 1, 1, 1, 1, 1]
    assert encoded.offsets().tolist() == [0, 4, 4, 8]
    assert "New York, Smith!"[slice(*encoded.spans[1])] == "York"


def test_only_collocations_with_a_vector_are_used() -> None:
    """``york is big`` and ``york is`` have none: cutting by them would make known words unknown."""
    encoded = encode(["york is big"], Lexicon.build("mst", TOKENS, COLLOCATIONS))
    assert encoded.n_words.tolist() == [1, 1, 1]
    assert (encoded.rows >= 0).all()


CHARACTERS = "new york is big the. ,!?'\u2019\u2026_\t\n\x1c\x85\xa0\u2003\u3000\u0301\U0001f600"
TEXTS = st.lists(
    st.text(CHARACTERS, max_size=40) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5
)


@given(TEXTS)
def test_words_and_spans_are_the_tokenizers(texts: list[str]) -> None:
    """Whatever white space and characters stand in a text."""
    encoded = encode(texts, Lexicon.build("mst", TOKENS, COLLOCATIONS))
    spans = [[span for sentence in token_spans(text) for span in sentence] for text in texts]
    assert encoded.spans.tolist() == [list(span) for of_text in spans for span in of_text]
    assert encoded.words == [
        normal_form(text[start:end]) for text, of_text in zip(texts, spans, strict=True) for start, end in of_text
    ]
    assert int(encoded.n_words.sum()) == len(encoded.words)
    tokens = ["_".join(encoded.words[at : at + n]) for at, n in zip(encoded.first_word, encoded.n_words, strict=True)]
    assert [TOKENS[row] if row >= 0 else None for row in encoded.rows.tolist()] == [
        token if token in TOKENS else None for token in tokens
    ]
