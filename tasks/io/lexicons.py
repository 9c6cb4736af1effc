"""Read what the text room needs to cut a text: collocations, and the vocabulary of one segmentation."""

from __future__ import annotations

import numpy as np

from tasks.io import paths
from tasks.io.tables import read_table, require
from tasks.text.encode import Lexicon
from tasks.text.segment import Collocations


def load_collocations() -> Collocations:
    """All collocations that the corpus gave."""
    bigrams = read_table(paths.COLLOCATIONS / "bigrams.parquet", "build_collocations")
    trigrams = read_table(paths.COLLOCATIONS / "trigrams.parquet", "build_collocations")
    return Collocations.build(
        [bigrams.column(name).to_pylist() for name in ("first_word", "second_word")],
        bigrams.column("pmi_bits").to_numpy().astype(np.float64),
        [trigrams.column(name).to_pylist() for name in ("first_word", "second_word", "third_word")],
        trigrams.column("pmi_bits").to_numpy().astype(np.float64),
    )


def load_lexicon(segmentation: str) -> Lexicon:
    """The vocabulary of one segmentation's embedding, and the collocations that have a vector in it."""
    tokens = load_words(segmentation)
    collocations = None if segmentation == "word" else load_collocations()
    return Lexicon.build(segmentation, tokens, collocations)


def load_words(segmentation: str) -> list[str]:
    """The tokens of one embedding, in row order."""
    file = require(paths.space(segmentation) / "words.txt", f"train_embeddings@{segmentation}")
    return file.read_text(encoding="utf-8").split("\n")[:-1]
