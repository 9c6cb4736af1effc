"""Sorted runs of (key, count) on disk, and their merge in bounded memory.

A run is a file of its keys (int64, ascending, each once) followed by their counts (int32), little-endian, nothing else:
any stretch of it can be read without the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tasks.io.tables import atomic_file
from tasks.text.ngrams import Counts, Keys, add_up

STEP = 4096  # every so many keys of a run one is looked at to cut all runs at the same keys
ROW = 12  # bytes


@dataclass(frozen=True, slots=True)
class Run:
    """A file and its number of rows."""

    file: Path
    n_rows: int

    @classmethod
    def of(cls, file: Path) -> Run:
        """The run in ``file``."""
        return cls(file, file.stat().st_size // ROW)

    def keys(self, start: int, stop: int) -> Keys:
        """(stop - start,) keys."""
        return np.fromfile(self.file, dtype="<i8", count=stop - start, offset=8 * start)

    def counts(self, start: int, stop: int) -> npt.NDArray[np.int32]:
        """(stop - start,) counts."""
        return np.fromfile(self.file, dtype="<i4", count=stop - start, offset=8 * self.n_rows + 4 * start)

    def sample(self) -> Keys:
        """Every STEP-th key, the first one among them. Seeks instead of mapping the file, which would load it whole."""
        with self.file.open("rb", buffering=0) as source:
            picked = []
            for row in range(0, self.n_rows, STEP):
                source.seek(8 * row)
                picked.append(source.read(8))
        return np.frombuffer(b"".join(picked), dtype="<i8")

    def places(self, sample: Keys, cuts: Keys) -> list[int]:
        """The first row with a key of at least each cut."""
        places = []
        for cut in cuts.tolist():
            start = max(int(np.searchsorted(sample, cut, side="left")) - 1, 0) * STEP
            block = self.keys(start, min(start + STEP, self.n_rows))
            places.append(start + int(np.searchsorted(block, cut, side="left")))
        return places


def write_run(file: Path, keys: Keys, counts: npt.NDArray[np.int32]) -> None:
    """Write one run."""
    with atomic_file(file) as partial, partial.open("wb") as out:
        keys.astype("<i8", copy=False).tofile(out)
        counts.astype("<i4", copy=False).tofile(out)


def merge(runs: Sequence[Run], at_once: int) -> Iterator[tuple[Keys, Counts, int]]:
    """Add up the counts of all runs: ascending keys, each once, in pieces, each with the number of rows it is made of.

    Args:
        runs: the same key may stand in several.
        at_once: rows read at a time; a piece may be larger by STEP rows for each run.
    """
    samples = [run.sample() for run in runs]
    picked = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *samples]))
    cuts = np.unique(picked[:: max(1, at_once // STEP)][1:])
    edges = [pairwise([0, *run.places(sample, cuts), run.n_rows]) for run, sample in zip(runs, samples, strict=True)]
    for stretches in zip(*edges, strict=True):
        read = [(run, *stretch) for run, stretch in zip(runs, stretches, strict=True)]
        keys = np.concatenate([run.keys(start, stop) for run, start, stop in read])
        counts = np.concatenate([run.counts(start, stop) for run, start, stop in read])
        yield *add_up(keys, counts), len(keys)
