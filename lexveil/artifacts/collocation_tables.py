"""Read the collocations of the corpus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.runtime.tables import require
from lexveil.text.collocation_index import Collocations

_WORDS = ("first_word", "second_word", "third_word")


def load_collocations(project: Path = Path()) -> Collocations:
    """All collocations of the corpus.

    Words stay Arrow dictionaries from the file to the look-up: a Python string is made once per distinct word, not
    once per occurrence in a collocation.
    """
    tables = []
    for name, size in (("bigrams", 2), ("trigrams", 3)):
        path = require(project / paths.COLLOCATIONS / f"{name}.parquet", "build_collocations")
        words = list(_WORDS[:size])
        tables.append(pq.read_table(path, columns=[*words, "pmi_bits"], read_dictionary=words))
    bigrams, trigrams = tables
    columns = [*bigrams.columns[:2], *trigrams.columns[:3]]
    chunks = [chunk for column in columns for chunk in column.chunks]
    together = pa.chunked_array(chunks, type=pa.dictionary(pa.int32(), pa.string())).unify_dictionaries()
    words = together.chunk(0).dictionary.to_pylist() if chunks else []
    ids = np.concatenate([np.empty(0, np.int32), *(chunk.indices.to_numpy() for chunk in together.chunks)])
    numbered = np.split(ids, np.cumsum([len(column) for column in columns[:-1]]))
    return Collocations.for_ids(
        numbered[:2],
        bigrams.column("pmi_bits").to_numpy(),
        numbered[2:],
        trigrams.column("pmi_bits").to_numpy(),
        {word: number for number, word in enumerate(words)},
    )
