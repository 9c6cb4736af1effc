"""Tokens as numbers: the same tokens, in the same sentences, as the tokenizer gives."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.token_ids import tokenize_texts
from tasks.text.tokenize import sentences

ALPHABET = "aB. \n!?'’_é-1"


@given(st.lists(st.text(alphabet=ALPHABET, max_size=30), max_size=5))
def test_the_same_as_the_tokenizer(texts: list[str]) -> None:
    found = tokenize_texts(pa.array(texts, pa.string()))
    words = found.words.to_pylist()
    tokens = iter([words[i] for i in found.ids])
    sizes = iter(found.sentence_sizes.tolist())
    assert [
        [[next(tokens) for _ in range(next(sizes))] for _ in range(n)] for n in found.sentences_per_text.tolist()
    ] == [sentences(text) for text in texts]
    assert next(tokens, None) is None
    assert list(dict.fromkeys(words[i] for i in found.ids)) == words  # each once, by first appearance
