"""Read the collocations that the corpus gave."""

from __future__ import annotations

import numpy as np

from tasks.io import paths
from tasks.io.tables import read_table
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
