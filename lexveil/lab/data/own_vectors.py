"""Implementation of ``lexveil.add_model``, which makes a packaged model from word vectors in memory
or in a file.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.lab.data import model_collection
from lexveil.lab.data.imported_models import MAX_WORDS
from lexveil.lab.data.keyed_vectors import table_of
from lexveil.lab.data.model_collection import ImportOptions

WAY_OUT = "give gensim's KeyedVectors (the attribute wv of a Word2Vec model), or the path of a file"


class KeyedVectors(Protocol):
    """The attributes of gensim's ``KeyedVectors`` that this module reads."""

    index_to_key: list[str]
    vectors: Any


def add_model(
    vectors: Path | str | KeyedVectors,
    *,
    name: str,
    license: str,
    language: str,
    collocations: str = "en",
    mixed_license: str | None = None,
    version: str = "1",
    max_words: int = MAX_WORDS,
    words: Path | str | None = None,
    force: bool = False,
) -> str:
    """Make a packaged model from word vectors, and store it in your data folder.

    Args:
        vectors: gensim's ``KeyedVectors``, or a file that `lexveil model add` takes. They must be
            trained on public texts, because whoever has the model could learn about those texts.
        name: name of the new model, for ``model=`` and ``--model``.
        license: licence under which the vectors may be used.
        language: language of the words, such as ``"en"``.
        collocations: model whose collocations are added for S2 to S4, or ``"none"``.
        mixed_license: licence under which the model may be used, if its collocations have another
            licence than its vectors.
        version: version of the new model.
        max_words: number of usable words to take, from the first on.
        words: public list of words, one per line; other words are left out.
        force: replace a model of this name.

    Returns:
        The name.

    Raises:
        RequestError: if the vectors cannot be used, a licence is missing, or a model of this name
            exists.
    """
    options = ImportOptions(
        name=name,
        license=license,
        language=language,
        collocations=collocations,
        mixed_license=mixed_license,
        version=version,
        max_words=max_words,
        words=None if words is None else Path(words),
    )
    if isinstance(vectors, Path | str):
        model_collection.add(Path(vectors), options, force)
        return name
    with TemporaryDirectory(prefix="lexveil-") as folder:
        file = Path(folder) / f"{name}.parquet"
        pq.write_table(_table(vectors), file)
        model_collection.add(file, options, force)
    return name


def _table(vectors: KeyedVectors) -> pa.Table:
    """Return words, vectors and counts as a table, in the form that
    ``lexveil.lab.data.word_vectors`` reads.
    """
    words, rows, counts = table_of(vectors, "vectors", WAY_OUT)
    return pa.table({"word": words, "vector": list(rows), "count": counts})
