"""Protocols of the models that the evaluation uses: classifiers, encoders and language models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.types import Floats, Ids, Vectors

# a mark that does not occur in texts; the mark and the bigrams across it are features
SEPARATOR = "␞"


class Classifier(Protocol):
    """Text classifier.

    The predictions depend only on the seed and on the texts and classes in their order, not on the
    number of threads.
    """

    name: ClassVar[str]

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Train the classifier on n texts, given the class of each text; there must be at least
        two different classes.
        """
        ...

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predict the class of each of n texts."""
        ...


class Encoder(Protocol):
    """Encoder that maps texts to vectors."""

    @property
    def name(self) -> str:
        """Name of the encoder in parameters and reports."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode n texts as (n, p) float32 vectors. The row of a text is zero if the encoder knows
        nothing in the text.
        """


@dataclass(frozen=True, slots=True)
class PerplexityScores:
    """Log probabilities that a language model assigns to n texts.

    Attributes:
        log_sum: (n,) natural log probability of the whole text.
        n_tokens: (n,) number of predictions in that sum, including ends of sentences if the model
            predicts them.
        n_unknown: (n,) number of tokens that the model does not know.
    """

    log_sum: Floats
    n_tokens: Ids
    n_unknown: Ids

    def average_perplexity(self) -> float:
        """Return the mean perplexity of the texts, exp(-log_sum / n_tokens), as in CLMLDP Table 2;
        NaN if there are no tokens.

        A single text of rare words can change the mean a lot.
        """
        has_tokens = self.n_tokens > 0
        each = np.exp(-self.log_sum[has_tokens] / self.n_tokens[has_tokens])
        return float(each.mean()) if len(each) else float("nan")

    def corpus_perplexity(self) -> float:
        """Return the perplexity of all texts together; NaN if there are no tokens."""
        n_tokens = int(self.n_tokens.sum())
        return float(np.exp(-self.log_sum.sum() / n_tokens)) if n_tokens else float("nan")


class LanguageModel(Protocol):
    """Protocol of a language model that scores texts."""

    @property
    def name(self) -> str:
        """Name of the model in parameters and reports."""

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each of n texts by its log probability. ``n_tokens`` is 0 for a text in which the
        model predicts nothing.
        """


def classified_texts(documents: pa.Table) -> list[str]:
    """Return the n texts that a classifier reads, each joined from the columns of a document.

    Args:
        documents: columns text, text_b, and context, which is a second text that is not rewritten.
    """
    seconds = pc.coalesce(documents.column("text_b"), documents.column("context"))
    return joined(documents.column("text").to_pylist(), seconds.to_pylist())


def joined(texts: Sequence[str], seconds: Sequence[str | None]) -> list[str]:
    """Join pairs of texts for classification, with SEPARATOR between the two texts; a text without
    a second text stays as it is.
    """
    return [
        text if second is None else f"{text} {SEPARATOR} {second}"
        for text, second in zip(texts, seconds, strict=True)
    ]
