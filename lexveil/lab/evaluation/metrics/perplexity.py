"""Perplexity metric: how natural a rewritten text is to a language model."""

from __future__ import annotations

from collections.abc import Mapping
from sys import float_info
from typing import Any

from lexveil.core.language_models.base import PerplexityScores
from lexveil.lab.evaluation.metrics.base import DatasetTexts, Entry, Metric, PaperTable, Score
from lexveil.lab.evaluation.scores import rounded

PERPLEXITY = Score(
    name="perplexity",
    metric="perplexity",
    words="perplexity",
    path=(),
    glance=("perplexity", "Perplexity"),
    decimals=1,
)


def perplexity_entry(scores: PerplexityScores) -> Entry:
    """Summarize the perplexities of one data set: the mean perplexity over texts (CLMLDP Table 2),
    and the perplexity of all texts taken as one.
    """
    if not scores.n_tokens.any():
        return {"left_out": "no text has a token that the language model predicts"}
    return {
        "left_out": None,
        "n_texts": len(scores.n_tokens),
        "n_tokens": int(scores.n_tokens.sum()),
        "n_unknown": int(scores.n_unknown.sum()),
        "mean": rounded(scores.average_perplexity()),
        "corpus": rounded(scores.corpus_perplexity()),
    }


class Perplexity(Metric):
    """Perplexity metric: mean perplexity of the rewritten texts under a language model."""

    name = "perplexity"
    title = "perplexity"
    back_end = "language_model"
    limits = (1.0, float_info.max)
    means = ("mean", "corpus")  # mean over texts, and perplexity of all texts as one
    same = ("n_texts",)  # a rewriting may leave no token that the language model knows
    scores = (PERPLEXITY,)
    tables = (
        PaperTable(
            "perplexity", "perplexity of the texts", (PERPLEXITY,), "CLMLDP Table 2", averaged=True
        ),
    )
    explanation = "the\n<strong>perplexity</strong> that a language model has of the texts"

    def compute(self, texts: DatasetTexts) -> Entry:
        """Compute the perplexity of a random sample of rewritten texts."""
        if texts.models.language_model is None:
            return {"left_out": "there is no corpus on which a language model could be trained"}
        return perplexity_entry(texts.models.language_model.score(texts.compared[1]))

    def summary(self, entry: Entry) -> str:
        """Return the mean perplexity over texts, and the perplexity of all texts taken as one, in
        one line.
        """
        return (
            f"mean {entry['mean']:,.1f} over {entry['n_texts']:,} texts, {entry['corpus']:,.1f} "
            "for all texts as one"
        )

    def note(self, entry: Mapping[str, Any]) -> str:
        """Return the note below a table of this metric: numbers of texts and of unknown tokens."""
        return (
            f"Mean over {entry['n_texts']:,} texts; {entry['n_unknown']:,} of the "
            f"{entry['n_tokens']:,} tokens of the clean texts are unknown to the model. A lower "
            "value is more like ordinary text."
        )
