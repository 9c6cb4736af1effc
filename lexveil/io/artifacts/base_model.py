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

DIMENSIONS = 100  # dimensions of the vectors if there is no base model


def find_base(settings: EmbeddingParams) -> PackagedModel | None:
    """Return the packaged model from which training starts, as params.yaml names it. The result is
    None if the value is ``none``.

    Raises:
        ParameterError: if ``find_pinned`` does not find the model, or if the dimensions of its
            vectors differ from those in params.yaml.
    """
    if settings.base == NO_BASE:
        return None
    model = find_pinned(settings.base, "embeddings.base")
    if settings.dimensions not in (None, model.card.dimensions):
        raise ParameterError(
            f"params.yaml: embeddings.dimensions is {settings.dimensions}, but the vectors "
            f"of the base model {model.card.name} have {model.card.dimensions} dimensions; "
            f"write `dimensions: null`, or `base: {NO_BASE}`"
        )
    return model


def require_language(base: PackagedModel | None, language: str) -> None:
    """Check that the language of the base model is the language of the corpus.

    Raises:
        ParameterError: if the languages differ.
    """
    if base is not None and language_of(base.card.language) != language_of(language):
        raise ParameterError(
            f"params.yaml: the language of embeddings.base {base.card.name} is "
            f"{base.card.language}, but model.language is {language}; write `base: "
            f"{NO_BASE}`, or name a base model of language {language}"
        )


def n_tokens(settings: EmbeddingParams, model: PackagedModel) -> int:
    """Return the number of tokens that training takes from the base model, beginning with the most
    frequent.
    """
    return min(settings.base_tokens or len(model.tokens), len(model.tokens))


def base_space(settings: EmbeddingParams, model: PackagedModel, segmentation: str) -> WordSpace:
    """Return the embedding of the base model for one segmentation, as the start of a training. The
    segmentation ``word`` has the single words, and the other segmentations have all tokens.
    """
    # embeddings.scale computes the lengths from the trained vectors
    space = model.space(segmentation, as_trained=True)
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
    """Return the bigram counts of V tokens, plus the bigram counts of the base model if the base
    model has counts.
    """
    of_base = None if model is None else model.bigrams(segmentation)
    if model is None or of_base is None:
        return counted
    row_of = {token: row for row, token in enumerate(tokens)}
    known = model.space(segmentation).tokens
    rows = np.array([row_of.get(token, -1) for token in known], dtype=np.int64)
    return counted.with_counts(of_base.renumbered(rows, len(tokens)))


def about_base(settings: EmbeddingParams, model: PackagedModel) -> dict[str, object]:
    """Return the facts about the base model that privacy records state."""
    return {
        "name": model.card.name,
        "version": model.card.version,
        "hash": model.hash,
        "n_tokens": n_tokens(settings, model),
        "vectors": settings.base_vectors,
    }
