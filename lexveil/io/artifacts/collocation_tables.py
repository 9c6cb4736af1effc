"""Reading of the collocations of a project. They come from its corpus and from its base model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.runtime.tables import require
from lexveil.core.text.collocation_index import Collocations

WORD_COLUMNS = ("first_word", "second_word", "third_word")


def load_collocations(project: Path = Path()) -> Collocations:
    """Load all collocations. The collocations of the corpus come first.

    Words stay Arrow dictionaries from the file to the look-up, so that a Python string is created
    once per distinct word, not once per occurrence in a collocation.
    """
    bigrams, trigrams = (
        pa.concat_tables(
            pq.read_table(
                file,
                columns=[*WORD_COLUMNS[:size], "pmi_bits"],
                read_dictionary=list(WORD_COLUMNS[:size]),
            )
            for file in collocation_files(name, project)
        )
        for name, size in (("bigrams", 2), ("trigrams", 3))
    )
    columns = [*bigrams.columns[:2], *trigrams.columns[:3]]
    chunks = [chunk for column in columns for chunk in column.chunks]
    together = pa.chunked_array(
        chunks, type=pa.dictionary(pa.int32(), pa.string())
    ).unify_dictionaries()
    words = together.chunk(0).dictionary.to_pylist() if chunks else []
    ids = np.concatenate(
        [np.empty(0, np.int32), *(chunk.indices.to_numpy() for chunk in together.chunks)]
    )
    numbered = np.split(ids, np.cumsum([len(column) for column in columns[:-1]]))
    return Collocations.for_ids(
        numbered[:2],
        bigrams.column("pmi_bits").to_numpy(),
        numbered[2:],
        trigrams.column("pmi_bits").to_numpy(),
        {word: number for number, word in enumerate(words)},
    )


def collocation_files(name: str, project: Path = Path()) -> list[Path]:
    """Return the Parquet files of a project's ``bigrams`` or ``trigrams``: the table of the corpus
    and, if training starts from a base model, the table of the base model.

    Raises:
        MissingArtifactError: if no run has made the tables.
    """
    own = require(project / paths.COLLOCATIONS / f"{name}.parquet", "build_collocations")
    return [own, *filter(Path.exists, [own.with_name(f"base_{name}.parquet")])]


def load_pmi(project: Path = Path()) -> dict[str, float]:
    """Return the PMI of every collocation in bits. A key is the words of a collocation, joined by
    ``_``. The corpus takes precedence over the base model.
    """
    bits: dict[str, float] = {}
    for name, size in (("bigrams", 2), ("trigrams", 3)):
        words = list(WORD_COLUMNS[:size])
        for file in reversed(collocation_files(name, project)):
            table = pq.read_table(file, columns=[*words, "pmi_bits"])
            columns = [table.column(word).to_pylist() for word in words]
            bits |= zip(
                map("_".join, zip(*columns, strict=True)),
                table.column("pmi_bits").to_pylist(),
                strict=True,
            )
    return bits
