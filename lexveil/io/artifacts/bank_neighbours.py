"""Nearest-neighbour search in a sentence bank for a sentence of the user. The nearest sentences are
the likeliest replacements of that sentence.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.core.accounting.results import Result
from lexveil.core.embeddings.exact_search import ExactSearch
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import open_bank, units_of_texts


class Neighbour(Result):
    """A sentence of a sentence bank, with its distance from the given text."""

    distance: float
    sentence: str


def neighbours(folder: Path, sentence: str, k: int, model: Model) -> list[Neighbour]:
    """Return the k sentences of a sentence bank that are nearest to a given sentence.

    Raises:
        RequestError: if ``open_bank`` cannot open the bank, or if the model knows no word of the
            sentence.
    """
    bank = open_bank(folder, model)
    units = units_of_texts([sentence], model)
    if not len(units.known().rows):
        raise RequestError(
            f"model {model.name} knows no word of the sentence, so all sentences of the "
            "bank are equally near; give a sentence with words of the model"
        )
    query = bank.space.embed(units)
    rows, distances = ExactSearch(bank.vectors).nearest_k(query.astype(np.float64), k)
    return [
        Neighbour(distance=round(distance, 4), sentence=bank.texts[row])
        for row, distance in zip(rows[0].tolist(), distances[0].tolist(), strict=True)
    ]
