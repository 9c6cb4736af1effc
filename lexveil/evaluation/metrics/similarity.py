"""Semantic similarity: the cosine of each text with its rewriting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.evaluation.encoder import Similarity, similarity
from lexveil.evaluation.metrics.base import DatasetTexts, Entry, Metric, PaperTable, Score, ScoreFigure, mean_of
from lexveil.evaluation.text_quality import plain

COSINE = Score(
    name="cosine",
    metric="similarity",
    words="cosine",
    path=(),
    glance=("cosine", "Cosine"),
    headline="cosine",
)


def similarity_entry(measured: Similarity) -> Entry:
    """Numbers of texts, mean and sample standard deviation over them."""
    if not measured.n_compared:
        return {"left_out": "no text and its rewriting both have a word that the encoder knows"}
    return {
        "left_out": None,
        "n_texts": len(measured.cosines),
        "n_compared": measured.n_compared,
        "n_original_unknown": measured.n_original_unknown,
        "n_private_unknown": measured.n_private_unknown,
        "mean": plain(measured.mean),
        "sd": plain(measured.sd),
    }


class CosineSimilarity(Metric):
    """Mean cosine over texts."""

    name, title, back_end = "similarity", "cosine similarity", "encoder"
    limits = (-1.0, 1.0)
    same = ("n_texts", "n_original_unknown")  # a rewriting may leave nothing that an encoder knows
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
        ScoreFigure("similarity", COSINE, "cosine of texts", "cosine of texts (1 = same direction)", levels=False),
    )
    explanation = "the <strong>cosine</strong> of the vectors of original and rewritten text, 1 where nothing is lost"

    def compute(self, texts: DatasetTexts) -> Entry:
        """Compare some texts; the encoder is made from clean ones."""
        original, rewritten = texts.compared
        assert texts.models.encoder_of is not None
        return similarity_entry(similarity(texts.models.encoder_of(original), original, rewritten))

    def values(self, entry: Entry, setting: str | None) -> list[tuple[float | None, Sequence[float] | None]]:  # noqa: ARG002
        """The mean."""
        return [mean_of(entry, "mean")]

    def summary(self, entry: Entry) -> str:
        """The mean."""
        return f"mean cosine {entry['mean']:.3f} of {entry['n_compared']:,} texts"

    def note(self, entry: Mapping[str, Any]) -> str:
        """How many texts."""
        return (
            f"{entry['n_compared']:,} of {entry['n_texts']:,} texts could be compared; ± is the standard deviation "
            "over texts."
        )

    def standard_error(self, entry: Mapping[str, Any], mean: float, sd: float | None) -> float | None:  # noqa: ARG002
        """Over texts."""
        return float(sd / math.sqrt(entry["n_compared"])) if sd is not None and entry["n_compared"] else None
