"""What a back end of the evaluation is: classifiers, encoders and language models, as the metrics
use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.types import Floats, Ids, Vectors

# a mark that texts do not have; it is a feature of its own, and so are the bigrams across it
SEPARATOR = "␞"


class Classifier(Protocol):
    """Learns classes from texts.

    The same seed, texts, classes and order of both give the same predictions, whatever number of
    threads there is.
    """

    name: ClassVar[str]

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Learn from n texts and the class of each; at least two different classes."""
        ...

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the class of each of n texts."""
        ...


class Encoder(Protocol):
    """Gives every text a vector."""

    @property
    def name(self) -> str:
        """Its name in parameters and reports."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """(n, p) float32 of n texts; a row of zeros where the text holds nothing the encoder
        knows.
        """


@dataclass(frozen=True, slots=True)
class PerplexityScores:
    """What a language model says of n texts.

    Attributes:
        log_sum: (n,) natural log probability of the whole text.
        n_tokens: (n,) how many predictions that is the sum of, ends of sentences included where the
            model has them.
        n_unknown: (n,) tokens the model has no word for.
    """

    log_sum: Floats
    n_tokens: Ids
    n_unknown: Ids

    def average_perplexity(self) -> float:
        """Mean of exp(-log_sum / n_tokens) of texts, as in CLMLDP Table 2; NaN without any token.

        One text of rare words can move it far.
        """
        has_tokens = self.n_tokens > 0
        each = np.exp(-self.log_sum[has_tokens] / self.n_tokens[has_tokens])
        return float(each.mean()) if len(each) else float("nan")

    def corpus_perplexity(self) -> float:
        """Perplexity of all texts as one; NaN without any token."""
        n_tokens = int(self.n_tokens.sum())
        return float(np.exp(-self.log_sum.sum() / n_tokens)) if n_tokens else float("nan")


class LanguageModel(Protocol):
    """Scores texts."""

    @property
    def name(self) -> str:
        """Its name in parameters and reports."""

    def score(self, texts: Sequence[str]) -> PerplexityScores:
        """Score each of n texts; ``n_tokens`` is 0 where there is nothing to predict."""


def classified_texts(documents: pa.Table) -> list[str]:
    """The texts of n documents as classifiers read them.

    Args:
        documents: columns text, text_b, and context: a second text that is not rewritten.
    """
    seconds = pc.coalesce(documents.column("text_b"), documents.column("context"))
    return joined(documents.column("text").to_pylist(), seconds.to_pylist())


def joined(texts: Sequence[str], seconds: Sequence[str | None]) -> list[str]:
    """The n texts that are classified: a text, or both of a pair with SEPARATOR between them."""
    return [
        text if second is None else f"{text} {SEPARATOR} {second}"
        for text, second in zip(texts, seconds, strict=True)
    ]
