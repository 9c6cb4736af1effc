"""The word lists."""

from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS

from lexveil.text.function_words import CONNECTORS, STOP_WORDS
from lexveil.text.tokenize import sentences


def test_connectors_are_the_published_ones() -> None:
    assert CONNECTORS == ENGLISH_CONNECTOR_WORDS


def test_stop_words_are_single_tokens() -> None:
    """A word the tokenizer would cut, or write otherwise, would never be recognised."""
    assert [word for word in sorted(STOP_WORDS) if sentences(word) != [[word]]] == []
