"""Reading and writing of list sets: words.txt, orders.npy, meta.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lexveil import paths
from lexveil.accounting.budgets import Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.embeddings import read_arrays, read_words, write_arrays
from lexveil.embeddings.word_orders import WordLists
from lexveil.embeddings.word_space import WordSpace
from lexveil.runtime.tables import require
from lexveil.types import Rows


def write_word_orders(lists: WordLists, meta: dict[str, object], folder: Path) -> None:
    """Create ``folder`` and write one list set into it."""
    folder.mkdir(parents=True)
    write_arrays(folder, {"orders": lists.orders}, lists.words, meta)


def load_word_orders(segmentation: str, name: str, project: Path = Path()) -> WordLists:
    """Load list set L0, L1 or L2 over the words of one segmentation; its orders are memory-mapped
    from disk.
    """
    made_by = "build_word_orders; params.yaml: word_orders.sets"
    folder = require(project / paths.word_orders(segmentation, name), made_by)
    return WordLists(read_words(folder / "words.txt"), *read_arrays(folder, "orders"))


def shared_rows(segmentation: str, space: WordSpace, policy: Policy, sets: Sequence[str]) -> Rows:
    """Return the rows of the vocabulary's words that are in every list set, ascending."""
    lists = [set(load_word_orders(segmentation, name).words) for name in sets]
    rows = Vocabulary.of(space.tokens, space.vectors, policy).rows
    shared = [row for row in rows.tolist() if all(space.tokens[row] in words for words in lists)]
    return np.array(shared, dtype=np.int64)
