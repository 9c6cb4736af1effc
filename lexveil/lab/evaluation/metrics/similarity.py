"""Semantic similarity metric: the cosine between the encodings of each text and of its rewritten
form. Both texts of a pair count as texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lexveil.base.types import Floats
from lexveil.core.language_models.base import Encoder
from lexveil.lab.evaluation.metrics.base import (
    DatasetTexts,
    Entry,
    Metric,
    PaperTable,
    Score,
    ScoreFigure,
)
from lexveil.lab.evaluation.scores import rounded

TEXTS_AT_A_TIME = 4096  # texts that are compared at a time
COSINE = Score(
    name="cosine", metric="similarity", words="cosine", path=(), glance=("cosine", "Cosine")
)


def cosines(
    encoder: Encoder, original: Sequence[str], private: Sequence[str]
) -> tuple[Floats, int, int]:
    """Compute the cosine between the encodings of each of n texts and of its rewritten form.

    Returns:
        (n,) cosines in [-1, 1], NaN if one of the two texts has no vector; the number of originals
            without any known word; and the number of privatized texts without any known word,
            including those whose originals have none.
    """
    similarities = np.empty(len(original))
    unknown = np.zeros(2, dtype=np.int64)
    for start in range(0, len(original), TEXTS_AT_A_TIME):
        block = slice(start, start + TEXTS_AT_A_TIME)
        pair = [encoder.encode(texts[block]).astype(np.float64) for texts in (original, private)]
        lengths = np.array([np.linalg.norm(vectors, axis=1) for vectors in pair])
        unknown += (lengths == 0).sum(axis=1)
        product = lengths[0] * lengths[1]
        cosine = np.einsum("np,np->n", *pair) / np.where(product > 0, product, np.nan)
        similarities[block] = np.clip(cosine, -1.0, 1.0)
    return similarities, int(unknown[0]), int(unknown[1])


def similarity_entry(cosine: Floats, n_original_unknown: int, n_private_unknown: int) -> Entry:
    """Summarize the cosines of one data set: numbers of texts, and mean and sample standard
    deviation over the texts.
    """
    compared = cosine[~np.isnan(cosine)]
    if not len(compared):
        return {"left_out": "no text and its rewriting both have a word that the encoder knows"}
    return {
        "left_out": None,
        "n_texts": len(cosine),
        "n_compared": len(compared),
        "n_original_unknown": n_original_unknown,
        "n_private_unknown": n_private_unknown,
        "mean": rounded(float(np.nanmean(cosine))),
        "sd": rounded(float(np.nanstd(cosine, ddof=1)) if len(compared) > 1 else math.nan),
    }


class CosineSimilarity(Metric):
    """Cosine similarity metric: mean cosine between the original and rewritten texts."""

    name = "similarity"
    title = "cosine similarity"
    back_end = "encoder"
    limits = (-1.0, 1.0)
    same = ("n_texts", "n_original_unknown")  # a rewriting may leave no word that the encoder knows
    scores = (COSINE,)
    tables = (
        PaperTable(
            "cosine",
            "cosine of original and rewritten text",
            (COSINE,),
            "CLMLDP Table 1, 1-Diffractor Table 2",
            averaged=True,
        ),
    )
    figures = (
        ScoreFigure(
            "similarity",
            COSINE,
            "cosine of texts",
            "cosine of texts (1 = same direction)",
            levels=False,
        ),
    )
    explanation = (
        "the <strong>cosine</strong> of the vectors of original and rewritten text; 1 means "
        "that nothing is lost"
    )

    def compute(self, texts: DatasetTexts) -> Entry:
        """Compute the cosines of a random sample of texts and their rewritten forms; the encoder is
        built from clean texts.
        """
        original, rewritten = texts.compared
        assert texts.models.encoder_of is not None
        return similarity_entry(*cosines(texts.models.encoder_of(original), original, rewritten))

    def summary(self, entry: Entry) -> str:
        """Return the mean cosine as one line."""
        return f"mean cosine {entry['mean']:.3f} of {entry['n_compared']:,} texts"

    def note(self, entry: Mapping[str, Any]) -> str:
        """Return the note below a table of this metric: numbers of texts, and the meaning of ±."""
        return (
            f"{entry['n_compared']:,} of {entry['n_texts']:,} texts could be compared; ± is "
            "the standard deviation "
            "over texts."
        )

    def standard_error(
        self,
        entry: Mapping[str, Any],
        mean: float,  # noqa: ARG002
        sd: float | None,
    ) -> float | None:
        """Return the standard error of the mean cosine over texts."""
        return (
            float(sd / math.sqrt(entry["n_compared"]))
            if sd is not None and entry["n_compared"]
            else None
        )
