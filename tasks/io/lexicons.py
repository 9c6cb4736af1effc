"""Read what a text is looked up in: the vocabulary of one segmentation, and its collocations."""

from __future__ import annotations

from tasks.io.collocations import load_collocations
from tasks.io.spaces import load_words
from tasks.text.encode import Lexicon


def load_lexicon(segmentation: str) -> Lexicon:
    """The vocabulary of one segmentation's embedding, and the collocations that have a vector in it."""
    tokens = load_words(segmentation)
    collocations = None if segmentation == "word" else load_collocations()
    return Lexicon.build(segmentation, tokens, collocations)
