"""Lexicons and their coverage of texts. A lexicon is the vocabulary of one segmentation with its
collocations. Coverage counts the words of texts that the vocabulary contains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lexveil.base.types import Ids
from lexveil.core.text.encode import Lexicon, TokenClass, encode
from lexveil.io.artifacts.collocation_tables import load_collocations
from lexveil.io.artifacts.embeddings import load_words
from lexveil.io.artifacts.text_rows import texts_of
from lexveil.io.execution.stage import Progress

TEXTS_AT_A_TIME = 5_000  # number of texts to segment at once, which bounds memory
LexiconOf = Callable[[str], Lexicon]
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("dataset", "segmentation", "doc_id", "field")]
    + [(name, pa.int64()) for name in ("n_words", "n_covered", "n_oov")]
)


def load_lexicon(segmentation: str, project: Path, language: str) -> Lexicon:
    """Load the vocabulary of the embedding of one segmentation, and the collocations that have a
    vector in the embedding.

    Args:
        language: language of the corpus.
    """
    tokens = load_words(segmentation, project)
    collocations = None if segmentation == "word" else load_collocations(project)
    return Lexicon.build(segmentation, tokens, collocations, language)


def count_words(texts: Sequence[str], lexicon: Lexicon) -> dict[str, Ids]:
    """Count the words of each of n texts: all words, words in the vocabulary, and words outside the
    vocabulary. Each array has the shape (n,). Punctuation does not count as a word.
    """
    encoded = encode(texts, lexicon)
    is_word = encoded.kind != TokenClass.PUNCTUATION.value
    is_known = is_word & (encoded.rows >= 0)

    n_words, n_covered = (
        np.bincount(encoded.text_of[chosen], encoded.n_words[chosen], minlength=len(texts)).astype(
            np.int64
        )
        for chosen in (is_word, is_known)
    )
    return {"n_words": n_words, "n_covered": n_covered, "n_oov": n_words - n_covered}


def text_words(
    documents: pa.Table, segmentations: Sequence[str], lexicon_of: LexiconOf
) -> pa.Table:
    """Return a table with one row per segmentation and text, and the columns dataset, segmentation,
    doc_id, field, n_words, n_covered, n_oov.
    """
    texts = texts_of(documents)
    progress = Progress("coverage", len(segmentations) * texts.num_rows, "texts")
    tables = [SCHEMA.empty_table()]
    for segmentation in segmentations:
        # Load one lexicon at a time, because the lexicon of a large corpus takes much memory.
        lexicon = lexicon_of(segmentation)
        for batch in texts.to_batches(max_chunksize=TEXTS_AT_A_TIME):
            columns: dict[str, object] = {
                name: batch.column(name) for name in ("dataset", "doc_id", "field")
            }
            columns["segmentation"] = pa.array([segmentation] * batch.num_rows, pa.string())
            columns |= count_words(batch.column("text").to_pylist(), lexicon)
            tables.append(pa.table(columns, SCHEMA))
            progress.advance(batch.num_rows)
    return pa.concat_tables(tables)
