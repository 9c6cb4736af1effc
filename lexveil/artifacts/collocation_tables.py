"""Read the collocations of a project: the corpus's own, and those that the base of its training
adds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.runtime.tables import require
from lexveil.text.collocation_index import Collocations

WORD_COLUMNS = ("first_word", "second_word", "third_word")


def load_collocations(project: Path = Path()) -> Collocations:
    """All collocations, the corpus's first.

    Words stay Arrow dictionaries from the file to the look-up: a Python string is made once per
    distinct word, not once per occurrence in a collocation.
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
    """The tables of ``bigrams`` or ``trigrams``: the corpus's, and that of the base, if training
    begins with one.

    Raises:
        MissingArtifact: if no run has made them.
    """
    own = require(project / paths.COLLOCATIONS / f"{name}.parquet", "build_collocations")
    return [own, *filter(Path.exists, [own.with_name(f"base_{name}.parquet")])]


def load_pmi(project: Path = Path()) -> dict[str, float]:
    """The PMI of every collocation in bits, by its words joined by ``_``; the corpus's own before
    that of the base.
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
