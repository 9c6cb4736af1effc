"""Files of near-word lists, which store the nearest words of each word. The lists of a project are
next to its table of nearest words; other lists are in the user's cache.

    meta.json        cache key of the lists (a hash of the vectors), and number of words with a list
    near.npy         (n, K) int32, the nearest words of each word, itself first
    distances.npy    (n, K) float64

A file may have space for more words than have lists, so that lists can be added. The most frequent
words come first. Every process memory-maps the files. The lists change no result; they only save
the time of computing nearest words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, write_json
from lexveil.base.types import Vectors
from lexveil.core.embeddings.neighborhoods import LISTED, NearTable, nearest_words
from lexveil.io.artifacts.embeddings import write_arrays

FORMAT = 1
META = "meta.json"
NEAR = "near.npy"
DISTANCES = "distances.npy"
LISTS_AT_A_TIME = 4096  # number of lists in a block


@dataclass(frozen=True)
class MappedTable(NearTable):
    """A table of near-word lists that is memory-mapped from a folder. A process that unpickles the
    table maps the folder again, or computes the lists if mapping fails.
    """

    folder: Path = Path()
    key: str = ""

    def __reduce__(self) -> tuple[Callable[..., NearTable], tuple[Path, str, int]]:
        return _map_again, (self.folder, self.key, self.ids.shape[1])


def key_of(vectors: Vectors) -> str:
    """Return the cache key of the near-word lists of these vectors."""
    hashed = hashlib.sha256(repr((FORMAT, LISTED, vectors.shape)).encode())
    hashed.update(np.ascontiguousarray(vectors, dtype=np.float32).data)
    return hashed.hexdigest()


def open_lists(folder: Path, key: str) -> MappedTable | None:
    """Open the near-word lists (nearest words of each word) in a folder. The result is None if
    there are no lists, or if the lists are incomplete or belong to other vectors.
    """
    try:
        meta = json.loads((folder / META).read_bytes())
        near, distances = (
            np.load(folder / name, mmap_mode="c", allow_pickle=False) for name in (NEAR, DISTANCES)
        )
        n = meta["listed"]
        fits = (
            meta["key"] == key
            and n <= len(near) == len(distances)
            and near.shape == distances.shape
        )
        if not fits or near.dtype != np.int32 or distances.dtype != np.float64:
            return None
        return MappedTable(
            np.asarray(near)[:n], np.asarray(distances)[:n], meta["largest_distance"], folder, key
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def cache_folder(key: str) -> Path:
    """Return the folder in the user's cache for the near-word lists with this key."""
    return paths.user_cache() / "neighborhoods" / key[:32]


def add_lists(
    folder: Path,
    vectors: Vectors,
    key: str,
    n_words: int,
    largest: float | None = None,
    on_step: Callable[[int], None] = lambda _: None,
    waits: bool = False,
) -> None:
    """Compute the missing near-word lists (nearest words) of the first ``n_words`` words in a
    folder. Each finished block of lists is usable at once.

    If another process computes lists in this folder, this call returns at once, or waits for that
    process if ``waits`` is true.

    Args:
        vectors: (V, p) float32 with the key ``key``.
        largest: the largest distance between two words, if it is known.
        on_step: function that is called with the number of lists computed since its last call.
        waits: whether to wait for another process.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{folder}.lock", timeout=-1 if waits else 0):
            if open_lists(folder, key) is None:
                shape = (len(vectors), min(LISTED, len(vectors)))
                with atomic_directory(folder) as partial:
                    # sparse files take disk space only when they are written
                    for name, kind in ((NEAR, np.int32), (DISTANCES, np.float64)):
                        np.lib.format.open_memmap(
                            partial / name, mode="w+", dtype=kind, shape=shape
                        ).flush()
                    write_json(_meta(key, 0, largest), partial / META)
            near, distances = (
                np.load(folder / name, mmap_mode="r+", allow_pickle=False)
                for name in (NEAR, DISTANCES)
            )
            first = json.loads((folder / META).read_bytes())["listed"]
            for start in range(first, min(n_words, len(vectors)), LISTS_AT_A_TIME):
                end = min(start + LISTS_AT_A_TIME, n_words, len(vectors))
                made = nearest_words(vectors, np.arange(start, end))
                near[start:end] = made.ids
                distances[start:end] = made.distances
                near.flush()
                distances.flush()
                write_json(_meta(key, end, largest), folder / META)
                on_step(end - start)
    except Timeout:
        return


def write_lists(table: NearTable, key: str, folder: Path) -> None:
    """Create ``folder`` and write a complete table of near-word lists into it."""
    folder.mkdir(parents=True)
    meta = _meta(key, len(table), table.largest)
    write_arrays(folder, {"near": table.ids, "distances": table.distances}, meta=meta)


def _map_again(folder: Path, key: str, size: int) -> NearTable:
    return open_lists(folder, key) or NearTable(
        np.empty((0, size), dtype=np.int32), np.empty((0, size))
    )


def _meta(key: str, listed: int, largest: float | None) -> dict[str, object]:
    return {"key": key, "listed": listed, "largest_distance": largest}
