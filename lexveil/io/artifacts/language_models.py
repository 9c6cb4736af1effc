"""Reading and writing of language models (words.txt, meta.json, three arrays for each order of
n-grams), and reading of their training sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, read_json, require
from lexveil.base.types import Ids
from lexveil.core.language_models.kneser_ney import KneserNey, Order
from lexveil.core.language_models.language_model import NgramModel
from lexveil.io.artifacts.embeddings import read_arrays, read_words, write_arrays

STAGE = "train_language_model"
ARRAYS = (
    "keys",
    "seen",
    "rest",
)  # arrays of one order, defined in lexveil/core/language_models/kneser_ney.py


def write_language_model(
    model: KneserNey, words: Sequence[str], about: Mapping[str, Any], out: Path
) -> None:
    """Write a language model into the folder ``out``. ``about``, the facts about its training, goes
    into meta.json.

    Args:
        words: (V,) normal form of each word by its number.
    """
    with atomic_directory(out) as folder:
        orders = enumerate(model.orders, start=1)
        arrays = {
            f"{name}_{number}": getattr(order, name) for number, order in orders for name in ARRAYS
        }
        discounts = [order.discount for order in model.orders]
        write_arrays(
            folder, arrays, words, {**about, "n_words": model.n_words, "discounts": discounts}
        )


def load_language_model() -> NgramModel | None:
    """Load the model of the stage train_language_model. Its n-grams are memory-mapped from disk and
    read when they are looked up.

    The result is None if the stage had no corpus to train on.

    Raises:
        MissingArtifactError: if the stage has not run.
    """
    folder = require(paths.LANGUAGE_MODEL, STAGE)
    meta = read_json(folder / "meta.json", STAGE)
    if "discounts" not in meta:
        return None
    orders = []
    for number, discount in enumerate(meta["discounts"], start=1):
        keys, seen, rest = read_arrays(folder, *(f"{name}_{number}" for name in ARRAYS))
        orders.append(Order(keys, seen, rest, discount))
    return NgramModel(KneserNey(meta["n_words"], orders), read_words(folder / "words.txt"))


def read_sentences(file: Path, max_tokens: int) -> tuple[Ids, Ids]:
    """Return the first sentences of a file, with at most ``max_tokens`` tokens in all but at least
    one sentence. The rest of the file is not read.

    Returns:
        (n,) word numbers, and (s + 1,) offsets of the s sentences among them.
    """
    parts = []
    n_tokens = 0
    for batch in pq.ParquetFile(require(file, "sample_corpus")).iter_batches(columns=["ids"]):
        parts.append(batch.column("ids"))
        n_tokens += len(parts[-1].flatten())
        if n_tokens >= max_tokens:
            break
    sentences = pa.chunked_array(parts, pa.list_(pa.int32()))
    ends = np.cumsum(pc.list_value_length(sentences).to_numpy(), dtype=np.int64)
    n_sentences = max(int(np.searchsorted(ends, max_tokens, side="right")), min(len(ends), 1))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends[:n_sentences]])
    ids = pc.list_flatten(sentences.slice(0, n_sentences)).to_numpy().astype(np.int64)
    return ids, offsets
