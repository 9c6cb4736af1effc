"""Loading of the lexicon of texts: the vocabulary of one segmentation, and its collocations."""

from __future__ import annotations

from pathlib import Path

from lexveil.artifacts.collocation_tables import load_collocations
from lexveil.artifacts.embeddings import load_words
from lexveil.text.encode import Lexicon


def load_lexicon(segmentation: str, project: Path, language: str) -> Lexicon:
    """Load the vocabulary of one segmentation's embedding, and the collocations that have a vector
    in it.

    Args:
        language: language of the corpus.
    """
    tokens = load_words(segmentation, project)
    collocations = None if segmentation == "word" else load_collocations(project)
    return Lexicon.build(segmentation, tokens, collocations, language)
