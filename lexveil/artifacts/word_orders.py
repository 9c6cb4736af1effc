"""Read and write list sets: words.txt, orders.npy, meta.json."""

from __future__ import annotations

from pathlib import Path

from lexveil import paths
from lexveil.artifacts.embeddings import read_arrays, read_words, write_arrays
from lexveil.embeddings.word_orders import WordLists
from lexveil.runtime.tables import require


def write_word_orders(lists: WordLists, meta: dict[str, object], folder: Path) -> None:
    """Write one list set into ``folder``, which is made."""
    folder.mkdir(parents=True)
    write_arrays(folder, {"orders": lists.orders}, lists.words, meta)


def load_word_orders(segmentation: str, name: str, project: Path = Path()) -> WordLists:
    """List set L0, L1 or L2 over the words of one segmentation; its orders are mapped from disk."""
    made_by = "build_word_orders; params.yaml: word_orders.sets"
    folder = require(project / paths.word_orders(segmentation, name), made_by)
    return WordLists(read_words(folder / "words.txt"), *read_arrays(folder, "orders"))
