"""The base model: the packaged model from which the training of a project starts (params.yaml:
embeddings.base).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lexveil.base.errors import ParameterError
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.languages import language_of
from lexveil.io.artifacts.collocation_tables import WORD_COLUMNS
from lexveil.io.artifacts.model_store import find_pinned
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.config import NO_BASE, EmbeddingParams

DIMENSIONS = 100  # dimensions of the vectors without a base model


def find_base(settings: EmbeddingParams) -> PackagedModel | None:
    """Return the base model that params.yaml names; None for ``none``.

    Raises:
        ParameterError: as of ``find_pinned``; or if the dimensions of its vectors differ from
            params.yaml.
    """
    if settings.base == NO_BASE:
        return None
    model = find_pinned(settings.base, "embeddings.base")
    if settings.dimensions not in (None, model.card.dimensions):
        raise ParameterError(
            f"params.yaml: embeddings.dimensions is {settings.dimensions}, but vectors of the "
            f"base {model.card.name} have "
            f"{model.card.dimensions}; write `dimensions: null`, or `base: {NO_BASE}`"
        )
    return model


def require_language(base: PackagedModel | None, language: str) -> None:
    """Check that the base model has the language whose tokenizer rules were applied to the corpus.

    Raises:
        ParameterError: if the languages differ.
    """
    if base is not None and language_of(base.card.language) != language_of(language):
        raise ParameterError(
            f"params.yaml: embeddings.base {base.card.name} is of language "
            f"{base.card.language}, and model.language is "
            f"{language}; write `base: {NO_BASE}`, or name a base of that language"
        )


def n_tokens(settings: EmbeddingParams, model: PackagedModel) -> int:
    """Return the number of tokens to take from the base model, the most frequent ones."""
    return min(settings.base_tokens or len(model.tokens), len(model.tokens))


def base_space(settings: EmbeddingParams, model: PackagedModel, segmentation: str) -> WordSpace:
    """Return the tokens of the base model for one segmentation: single words for ``word``, all
    tokens for the others.
    """
    space = model.space(segmentation, as_trained=True)  # embeddings.scale gives the lengths
    taken = int(np.searchsorted(model.rows(segmentation), n_tokens(settings, model)))
    return WordSpace(space.tokens[:taken], space.vectors[:taken], space.counts[:taken])


def base_collocations(settings: EmbeddingParams, model: PackagedModel) -> dict[str, pa.Table]:
    """Return the collocations of the base model in two tables, ``bigrams`` and ``trigrams``, with
    words, count and pmi_bits, sorted by words.
    """
    space = base_space(settings, model, "mst")
    pmi = np.asarray(model.pmi, dtype=np.float64)
    words = [token.split("_") for token in space.tokens]
    tables = {}
    for name, columns in (("bigrams", WORD_COLUMNS[:2]), ("trigrams", WORD_COLUMNS)):
        rows = np.array(
            [row for row, parts in enumerate(words) if len(parts) == len(columns)], dtype=np.int64
        )
        parts = [[words[row][number] for row in rows] for number in range(len(columns))]
        figures = {
            "count": pa.array(space.counts[rows], pa.int64()),
            "pmi_bits": pa.array(pmi[rows], pa.float64()),
        }
        texts = {
            column: pa.array(part, pa.string()) for column, part in zip(columns, parts, strict=True)
        }
        tables[name] = pa.table(texts | figures).sort_by(
            [(column, "ascending") for column in columns]
        )
    return tables


def with_base(
    counted: Bigrams, tokens: Sequence[str], segmentation: str, model: PackagedModel | None
) -> Bigrams:
    """Return the bigram counts of V tokens with those of the base model, if it has any."""
    of_base = None if model is None else model.bigrams(segmentation)
    if model is None or of_base is None:
        return counted
    row_of = {token: row for row, token in enumerate(tokens)}
    known = model.space(segmentation).tokens
    rows = np.array([row_of.get(token, -1) for token in known], dtype=np.int64)
    return counted.with_counts(of_base.renumbered(rows, len(tokens)))


def about_base(settings: EmbeddingParams, model: PackagedModel) -> dict[str, object]:
    """Return the facts about the base model for records."""
    return {
        "name": model.card.name,
        "version": model.card.version,
        "hash": model.hash,
        "n_tokens": n_tokens(settings, model),
        "vectors": settings.base_vectors,
    }
