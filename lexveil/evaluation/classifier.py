"""The linear classifier of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from lexveil.evaluation.linear import TfidfLogistic
from lexveil.evaluation.ngrams import CountedTexts, Ngrams


class Linear:
    """TF-IDF and logistic regression, scikit-learn's.

    Features: words and punctuation marks in lower case, and pairs of neighbours, of those that occur in at least two
    of the training texts; (1 + ln tf)·idf with smoothed idf, texts scaled to length 1. Punctuation is a feature
    because a policy may keep it, and then it tells about the author. Layout and capitals are not: rewritten texts have
    none of their own, so what a classifier learnt of them from clean texts would mislead it.

    Its loss has one minimum, so order and seed move scores by rounding only. Memory grows with features × classes;
    texts that share no feature at all give the most frequent class. ``CountedTexts`` are not counted again.
    """

    name: ClassVar[str] = "linear"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._ngrams: Ngrams | None = None
        self._model = TfidfLogistic(seed)

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Learn from n texts and the class of each; at least two different classes."""
        if isinstance(texts, CountedTexts):
            self._ngrams, counts = texts.ngrams, texts.counts
        else:
            self._ngrams, counts = Ngrams.counted(texts)
        self._model.fit(counts, classes)
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the class of each of n texts."""
        assert self._ngrams is not None
        if isinstance(texts, CountedTexts) and texts.ngrams is self._ngrams:
            counts = texts.counts
        else:
            counts = self._ngrams.count(texts)
        return [str(name) for name in self._model.predict(counts)]
