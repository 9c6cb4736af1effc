"""Texts as arrays."""

import numpy as np

from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Lexicon, TokenClass, encode

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
    mst = encode(["york is big"], Lexicon.build("mst", TOKENS, COLLOCATIONS))  # by collocations with a vector only
    assert mst.n_words.tolist() == [1, 1, 1] and (mst.rows >= 0).all()
