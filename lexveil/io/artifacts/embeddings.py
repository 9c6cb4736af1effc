"""Files with arrays for the words of a project: embeddings, bigram counts, and word orders.

Each artifact is a folder with arrays NAME.npy and, where needed, words.txt and meta.json. Nothing
is pickled; arrays are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, read_json, require, write_json
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.word_orders import WordLists
from lexveil.core.embeddings.word_space import WordSpace

# largest number of pairs to store, the most frequent ones, so that any corpus fits into memory
MOST_BIGRAMS = 2_000_000
BIGRAM_FILES = ("starts.npy", "ids.npy", "counts.npy")
LARGEST_COUNT = 2**16 - 1  # largest stored count; a larger count is stored as this one


def write_embedding(space: WordSpace, out: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write one embedding into the folder ``out``. ``about``, the facts about its training, goes
    into meta.json.
    """
    with atomic_directory(out) as folder:
        n, p = space.vectors.shape
        meta = {**(about or {}), "n_tokens": n, "dimensions": p, "dtype": "float32"}
        write_arrays(folder, {"counts": space.counts, "vectors": space.vectors}, space.tokens, meta)


def load_embedding(segmentation: str, project: Path = Path()) -> WordSpace:
    """Load the embedding that was trained on one segmentation; its vectors are memory-mapped from
    disk.
    """
    return read_space(_folder(segmentation, project))


def read_space(folder: Path) -> WordSpace:
    """Read the embedding in ``folder``; its vectors are memory-mapped from disk."""
    vectors, counts = read_arrays(folder, "vectors", "counts")
    return WordSpace(read_words(folder / "words.txt"), vectors, np.array(counts))


def load_purposes(segmentation: str, project: Path = Path()) -> dict[str, str]:
    """Return the purposes (preserved word scales such as sentiment) whose axes an embedding
    contains: the sha256 of each scale, by the name and weight of the purpose.
    """
    made = read_json(_folder(segmentation, project) / "meta.json", "train_embeddings")
    purposes: dict[str, str] = made.get("purposes", {})
    return purposes


def load_words(segmentation: str, project: Path = Path()) -> list[str]:
    """Load the tokens of one embedding, in row order."""
    return read_words(_folder(segmentation, project) / "words.txt")


def _folder(segmentation: str, project: Path) -> Path:
    made_by = (
        f"train_embeddings@{segmentation}, if grid.segmentations of params.yaml names "
        f"{segmentation}"
    )
    return require(project / paths.embedding(segmentation), made_by)


def write_arrays(
    folder: Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    words: Iterable[str] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> None:
    """Write each array as NAME.npy into the existing folder ``folder``, and words.txt and meta.json
    if they are given.
    """
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    if words is not None:
        write_words(words, folder / "words.txt")
    if meta is not None:
        write_json(meta, folder / "meta.json")


def read_arrays(folder: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Return the arrays NAME.npy of a folder, memory-mapped from disk."""
    return [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names]


def write_words(tokens: Iterable[str], file: Path) -> None:
    """Write tokens, one per line. Only a line feed ends a line."""
    file.write_text("".join(token + "\n" for token in tokens), encoding="utf-8", newline="\n")


def read_words(file: Path) -> list[str]:
    """Read tokens that ``write_words`` wrote."""
    # Do not use splitlines or translate line ends: a token may contain any other separator.
    return file.read_bytes().decode("utf-8").split("\n")[:-1]


def write_bigrams(bigrams: Bigrams, folder: Path) -> None:
    """Write the bigram counts of one embedding into the existing folder ``folder``."""
    n = len(bigrams.starts) - 1
    arrays = {
        "starts": bigrams.starts.astype(np.uint32),
        "ids": bigrams.ids.astype(np.uint16 if n <= 2**16 else np.uint32),
        "counts": np.minimum(bigrams.counts, LARGEST_COUNT).astype(np.uint16),
    }
    write_arrays(folder, arrays)


def read_bigrams(folder: Path) -> Bigrams:
    """Read bigram counts that ``write_bigrams`` wrote."""
    starts, ids, counts = read_arrays(folder, "starts", "ids", "counts")
    return Bigrams(starts.astype(np.int64), ids.astype(np.int32), counts.astype(np.int64))


def load_bigrams(segmentation: str, project: Path = Path()) -> Bigrams:
    """Load the bigram counts for the embedding of one segmentation. The counts are indexed by the
    rows of the embedding.
    """
    return read_bigrams(
        require(project / paths.bigrams(segmentation), f"count_bigrams@{segmentation}")
    )


def write_word_orders(lists: WordLists, meta: dict[str, object], folder: Path) -> None:
    """Create ``folder`` and write one set of word lists into it."""
    folder.mkdir(parents=True)
    write_arrays(folder, {"orders": lists.orders}, lists.words, meta)


def load_word_orders(segmentation: str, name: str, project: Path = Path()) -> WordLists:
    """Load the set of word lists L0, L1 or L2 over the words of one segmentation; its orders are
    memory-mapped from disk.
    """
    made_by = "build_word_orders; params.yaml: word_orders.sets"
    folder = require(project / paths.word_orders(segmentation, name), made_by)
    return WordLists(read_words(folder / "words.txt"), *read_arrays(folder, "orders"))
