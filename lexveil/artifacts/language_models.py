"""Read and write the language model: words.txt, meta.json, and three arrays for each order of n-grams; no pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lexveil import paths
from lexveil.artifacts.embeddings import read_arrays, read_words, write_arrays
from lexveil.evaluation.kneser_ney import KneserNey, Order
from lexveil.evaluation.language_model import NgramModel
from lexveil.runtime.tables import atomic_directory, read_json, require

STAGE = "train_language_model"
ARRAYS = ("keys", "seen", "rest")  # of an order; lexveil/evaluation/kneser_ney.py defines them


def write_language_model(model: KneserNey, words: Sequence[str], about: Mapping[str, Any], out: Path) -> None:
    """Write the model into folder ``out``; ``about``, how it was made, goes into meta.json.

    Args:
        words: (V,) normal form by number.
    """
    with atomic_directory(out) as folder:
        orders = enumerate(model.orders, start=1)
        arrays = {f"{name}_{number}": getattr(order, name) for number, order in orders for name in ARRAYS}
        discounts = [order.discount for order in model.orders]
        write_arrays(folder, arrays, words, {**about, "n_words": model.n_words, "discounts": discounts})


def load_language_model() -> NgramModel | None:
    """The model of stage train_language_model; its n-grams are mapped from disk and read as they are looked up.

    None if there was no corpus to learn from.

    Raises:
        MissingArtifact: if it was not trained.
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
