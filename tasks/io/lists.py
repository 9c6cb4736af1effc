"""Read and write list sets: words.txt, orders.npy, meta.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tasks.io import paths
from tasks.io.spaces import read_words, write_words
from tasks.io.tables import require, write_json
from tasks.space.lists import WordLists


def write_lists(lists: WordLists, meta: dict[str, Any], folder: Path) -> None:
    """Write one list set into ``folder``, which is made."""
    folder.mkdir(parents=True)
    write_words(lists.words, folder / "words.txt")
    np.save(folder / "orders.npy", lists.orders, allow_pickle=False)
    write_json(meta, folder / "meta.json")


def load_lists(segmentation: str, name: str) -> WordLists:
    """List set L0, L1 or L2 over the words of one segmentation; its orders are mapped from disk."""
    folder = require(paths.lists(segmentation, name), f"build_lists@{segmentation}; params.yaml: lists.sets")
    return WordLists(
        read_words(folder / "words.txt"), np.load(folder / "orders.npy", mmap_mode="r", allow_pickle=False)
    )
