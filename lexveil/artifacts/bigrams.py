"""Bigram counts of an embedding's tokens, kept as starts, ids and counts.npy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import read_arrays, write_arrays
from lexveil.embeddings.bigrams import Bigrams
from lexveil.runtime.tables import require

# pairs of a table, the most frequent, so that it fits into memory whatever the corpus
MOST = 2_000_000
FILES = ("starts.npy", "ids.npy", "counts.npy")
LARGEST = 2**16 - 1  # count that is kept; the few larger ones become this one


def write_bigrams(bigrams: Bigrams, folder: Path) -> None:
    """Write the counts of one embedding into ``folder``, which is there."""
    n = len(bigrams.starts) - 1
    arrays = {
        "starts": bigrams.starts.astype(np.uint32),
        "ids": bigrams.ids.astype(np.uint16 if n <= 2**16 else np.uint32),
        "counts": np.minimum(bigrams.counts, LARGEST).astype(np.uint16),
    }
    write_arrays(folder, arrays)


def read_bigrams(folder: Path) -> Bigrams:
    """Read what ``write_bigrams`` wrote."""
    starts, ids, counts = read_arrays(folder, "starts", "ids", "counts")
    return Bigrams(starts.astype(np.int64), ids.astype(np.int32), counts.astype(np.int64))


def load_bigrams(segmentation: str, project: Path = Path()) -> Bigrams:
    """The counts of the tokens of one segmentation's embedding, by its rows."""
    return read_bigrams(
        require(project / paths.bigrams(segmentation), f"count_bigrams@{segmentation}")
    )
