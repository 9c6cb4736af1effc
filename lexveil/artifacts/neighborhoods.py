"""Files of near-word lists: a project's are next to its neighbours, others in the user's cache.

    meta.json        whose lists they are (a hash of the vectors), and of how many words
    near.npy         (n, K) int32, the nearest words of each word, itself first
    distances.npy    (n, K) float64

A file may have room for more words than have lists, so that lists can be added: first come the most
frequent words. Every process maps the files; which lists there are changes no result, only who has
to make the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from lexveil import paths
from lexveil.artifacts.embeddings import write_arrays
from lexveil.embeddings.neighborhoods import LISTED, NearTable, nearest_words
from lexveil.runtime.tables import atomic_directory, write_json
from lexveil.types import Vectors

FORMAT = 1
META, NEAR, DISTANCES = "meta.json", "near.npy", "distances.npy"
BLOCK = 4096  # words whose lists are added at a time


@dataclass(frozen=True)
class MappedTable(NearTable):
    """A table mapped from a folder. Other processes map it again; where they cannot, they make
    their lists.
    """

    folder: Path = Path()
    key: str = ""

    def __reduce__(self) -> tuple[Callable[..., NearTable], tuple[Path, str, int]]:
        return _map_again, (self.folder, self.key, self.ids.shape[1])


def key_of(vectors: Vectors) -> str:
    """What says whose lists they are."""
    hashed = hashlib.sha256(repr((FORMAT, LISTED, vectors.shape)).encode())
    hashed.update(np.ascontiguousarray(vectors, dtype=np.float32).data)
    return hashed.hexdigest()


def open_lists(folder: Path, key: str) -> MappedTable | None:
    """The lists in a folder; None if there are none, or they are of other vectors, or not whole."""
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
    """Where the user's cache has the lists of some vectors."""
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
    """Make the lists of the first ``n_words`` words that are not in the folder yet; each block
    counts when it is whole.

    Where another process is at it, this one leaves it to it, or waits for it.

    Args:
        vectors: (V, p) float32, of which ``key`` is the key.
        largest: the largest distance of two words, where it is known.
        on_step: called with the number of lists made since its last call.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{folder}.lock", timeout=-1 if waits else 0):
            if open_lists(folder, key) is None:
                shape = (len(vectors), min(LISTED, len(vectors)))
                with atomic_directory(folder) as partial:
                    # no disk space until written to
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
            for start in range(first, min(n_words, len(vectors)), BLOCK):
                end = min(start + BLOCK, n_words, len(vectors))
                made = nearest_words(vectors, np.arange(start, end))
                near[start:end], distances[start:end] = made.ids, made.distances
                near.flush()
                distances.flush()
                write_json(_meta(key, end, largest), folder / META)
                on_step(end - start)
    except Timeout:
        return


def write_lists(table: NearTable, key: str, folder: Path) -> None:
    """Write a whole table into ``folder``, which is made."""
    folder.mkdir(parents=True)
    meta = _meta(key, len(table), table.largest)
    write_arrays(folder, {"near": table.ids, "distances": table.distances}, meta=meta)


def _map_again(folder: Path, key: str, size: int) -> NearTable:
    return open_lists(folder, key) or NearTable(
        np.empty((0, size), dtype=np.int32), np.empty((0, size))
    )


def _meta(key: str, listed: int, largest: float | None) -> dict[str, object]:
    return {"key": key, "listed": listed, "largest_distance": largest}
