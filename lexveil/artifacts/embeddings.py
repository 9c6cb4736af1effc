"""Read and write embeddings: words.txt, counts.npy, vectors.npy (memory-mapped), meta.json. Nothing is pickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.embeddings.word_space import WordSpace
from lexveil.runtime.tables import atomic_directory, require, write_json


def write_embedding(space: WordSpace, out: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write one embedding into folder ``out``; ``about``, how it was made, goes into meta.json."""
    with atomic_directory(out) as folder:
        write_words(space.tokens, folder / "words.txt")
        np.save(folder / "counts.npy", space.counts, allow_pickle=False)
        np.save(folder / "vectors.npy", space.vectors, allow_pickle=False)
        n, p = space.vectors.shape
        write_json({**(about or {}), "n_tokens": n, "dimensions": p, "dtype": "float32"}, folder / "meta.json")


def load_embedding(segmentation: str, project: Path = Path()) -> WordSpace:
    """The embedding trained on one segmentation; its vectors are mapped from disk."""
    return read_space(require(project / paths.embedding(segmentation), f"train_embeddings@{segmentation}"))


def read_space(folder: Path) -> WordSpace:
    """The embedding in ``folder``; its vectors are mapped from disk."""
    return WordSpace(
        read_words(folder / "words.txt"),
        np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False),
        np.load(folder / "counts.npy", allow_pickle=False),
    )


def load_words(segmentation: str, project: Path = Path()) -> list[str]:
    """The tokens of one embedding, in row order."""
    return read_words(
        require(project / paths.embedding(segmentation) / "words.txt", f"train_embeddings@{segmentation}")
    )


def write_words(tokens: Iterable[str], file: Path) -> None:
    """Write tokens, one a line; a line ends at a line feed and nowhere else."""
    file.write_text("".join(token + "\n" for token in tokens), encoding="utf-8", newline="\n")


def read_words(file: Path) -> list[str]:
    """Read what ``write_words`` wrote."""
    # Not splitlines and no translation of line ends: a token may hold any other separator.
    return file.read_bytes().decode("utf-8").split("\n")[:-1]
