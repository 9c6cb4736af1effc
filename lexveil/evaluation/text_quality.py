"""What rewriting did to texts, whatever they are for: how similar they are to the originals, how natural they read.

Both measures are of single texts; of a pair each of the two is a text of its own, as in 1-Diffractor Table 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lexveil.evaluation.scores import DIGITS
from lexveil.types import Rows

STREAM = "evaluate"  # the first name of the random streams of the evaluation


def drawn(n_texts: Sequence[int], max_texts: int | None, rng: np.random.Generator) -> Rows:
    """Documents drawn at random, as many as have at most ``max_texts`` texts together, at least one; ascending.

    Args:
        n_texts: of each of n documents, 1 or 2.
        max_texts: None takes all documents.
    """
    if max_texts is None:
        return np.arange(len(n_texts))
    order = rng.permutation(len(n_texts))
    n_drawn = np.searchsorted(np.cumsum(np.asarray(n_texts)[order]), max_texts, side="right")
    return np.sort(order[: max(int(n_drawn), 1)])


def texts_of(texts: Sequence[str], seconds: Sequence[str | None], rows: Rows) -> list[str]:
    """The texts of the documents at ``rows``: one of each, and after it the second of a pair."""
    each = ((texts[row], seconds[row]) for row in rows.tolist())
    return [text for pair in each for text in pair if text is not None]


def plain(value: float) -> float | None:
    """Rounded; None for what a single text does not have."""
    return None if math.isnan(value) else round(value, DIGITS)
