"""What rewriting did to texts, whatever they are for: how similar they are to the originals, how natural they read.

Both measures are of single texts; of a pair each of the two is a text of its own, as in 1-Diffractor Table 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lexveil.evaluation.base import PerplexityScores
from lexveil.evaluation.encoder import Similarity
from lexveil.evaluation.scores import DIGITS
from lexveil.types import Rows


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


def similarity_entry(measured: Similarity) -> dict[str, Any]:
    """What is written of similarity, as JSON values: numbers of texts, mean and sample standard deviation over them."""
    if not measured.n_compared:
        return {"left_out": "no text and its rewriting both have a word that the encoder knows"}
    return {
        "left_out": None,
        "n_texts": len(measured.cosines),
        "n_compared": measured.n_compared,
        "n_original_unknown": measured.n_original_unknown,
        "n_private_unknown": measured.n_private_unknown,
        "mean": _plain(measured.mean),
        "sd": _plain(measured.sd),
    }


def perplexity_entry(scores: PerplexityScores) -> dict[str, Any]:
    """What is written of perplexity, as JSON values: the mean over texts (CLMLDP Table 2), and that of all as one."""
    if not scores.n_tokens.any():
        return {"left_out": "no text has a token that the language model predicts"}
    return {
        "left_out": None,
        "n_texts": len(scores.n_tokens),
        "n_tokens": int(scores.n_tokens.sum()),
        "n_unknown": int(scores.n_unknown.sum()),
        "mean": _plain(scores.average_perplexity()),
        "corpus": _plain(scores.corpus_perplexity()),
    }


def _plain(value: float) -> float | None:
    """Rounded; None for what a single text does not have."""
    return None if math.isnan(value) else round(value, DIGITS)
