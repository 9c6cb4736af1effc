"""Bigram counts of an embedding's tokens in the files starts.npy, ids.npy and counts.npy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import read_arrays, write_arrays
from lexveil.embeddings.bigrams import Bigrams
from lexveil.runtime.tables import require

# largest number of pairs, the most frequent ones, so that any corpus fits into memory
MOST = 2_000_000
FILES = ("starts.npy", "ids.npy", "counts.npy")
LARGEST = 2**16 - 1  # largest stored count; the few larger ones are cut to it


def write_bigrams(bigrams: Bigrams, folder: Path) -> None:
    """Write the counts of one embedding into the existing folder ``folder``."""
    n = len(bigrams.starts) - 1
    arrays = {
        "starts": bigrams.starts.astype(np.uint32),
        "ids": bigrams.ids.astype(np.uint16 if n <= 2**16 else np.uint32),
        "counts": np.minimum(bigrams.counts, LARGEST).astype(np.uint16),
    }
    write_arrays(folder, arrays)


def read_bigrams(folder: Path) -> Bigrams:
    """Read bigram counts that ``write_bigrams`` wrote."""
    starts, ids, counts = read_arrays(folder, "starts", "ids", "counts")
    return Bigrams(starts.astype(np.int64), ids.astype(np.int32), counts.astype(np.int64))


def load_bigrams(segmentation: str, project: Path = Path()) -> Bigrams:
    """Load the bigram counts of the embedding of one segmentation, by its rows."""
    return read_bigrams(
        require(project / paths.bigrams(segmentation), f"count_bigrams@{segmentation}")
    )
