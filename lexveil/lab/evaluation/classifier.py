"""Linear text classifier on TF-IDF features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from lexveil.base.types import Flags, Floats
from lexveil.lab.evaluation.ngrams import MIN_TEXTS, CountedTexts, Ngrams, columns_of


class TfidfLogistic:
    """Text classifier: TF-IDF features and scikit-learn's logistic regression, from precomputed
    n-gram counts.

    Features: n-grams that occur in at least ``MIN_TEXTS`` of the training texts; (1 + ln tf)·idf
    with smoothed idf, texts scaled to length 1. Loss: multinomial logistic with an L2 penalty (C =
    1). All classes have the same weight, as in macro F1, because otherwise, with few texts and
    unequal classes, the classifier would learn to predict the most frequent class. The optimizer is
    L-BFGS, which starts at 0 and stops at a gradient of 1e-4 or after 1000 steps.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._kept: Flags = np.zeros(0, dtype=np.bool_)
        self._tfidf: Any = None
        self._model: Any = None

    def fit(self, counts: csr_array, labels: Sequence[Any] | npt.NDArray[Any]) -> Self:
        """Train the classifier on the n-gram counts (n, m) of n texts and their classes (n,), which
        must include at least two different classes.
        """
        from sklearn.dummy import DummyClassifier
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        self._kept = np.bincount(counts.indices, minlength=counts.shape[1]) >= MIN_TEXTS
        if self._kept.any():
            self._tfidf = TfidfTransformer(sublinear_tf=True).fit(columns_of(counts, self._kept))
            self._model = LogisticRegression(
                C=1.0,
                class_weight="balanced",
                tol=1e-4,
                max_iter=1000,
                random_state=self.seed,
            )
        else:  # no n-gram occurs in two texts
            self._model = DummyClassifier(strategy="most_frequent")
        # Threads split sums over many features, and the rounding depends on the number of threads.
        with threadpool_limits(limits=1):
            self._model.fit(self.features(counts), labels)
        return self

    def features(self, counts: csr_array) -> csr_array:
        """Return the TF-IDF features (n, f) of n texts from their n-gram counts (n, m); a text
        without a known n-gram has a row of zeros.
        """
        columns = columns_of(counts, self._kept)
        return self._tfidf.transform(columns) if self._tfidf else columns

    def predict(self, counts: csr_array) -> npt.NDArray[Any]:
        """Predict the class of each of n texts, (n,), from their n-gram counts."""
        predicted: npt.NDArray[Any] = self._model.predict(self.features(counts))
        return predicted

    def predict_proba(self, counts: csr_array) -> Floats:
        """Return the class probabilities (n, c) of n texts, in ascending order of the classes."""
        probability: Floats = self._model.predict_proba(self.features(counts))
        return probability


class Linear:
    """Linear text classifier: ``TfidfLogistic`` over lower-case words, punctuation marks, and pairs
    of neighbours of these.

    Punctuation is a feature because a policy may keep it, and then it reveals something about the
    author. Layout and capitals are no features: rewritten texts do not preserve them, so a
    classifier that learnt them from clean texts would be misled.

    The loss has one minimum, so order and seed change scores by rounding only. Memory grows with
    features × classes. Texts without any feature get the most frequent class. The n-grams of
    ``CountedTexts`` are not counted again.
    """

    name: ClassVar[str] = "linear"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._ngrams: Ngrams | None = None
        self._model = TfidfLogistic(seed)

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Train the classifier on n texts and the class of each; there must be at least two
        different classes.
        """
        if isinstance(texts, CountedTexts):
            self._ngrams = texts.ngrams
            counts = texts.counts
        else:
            self._ngrams, counts = Ngrams.counted(texts)
        self._model.fit(counts, classes)
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predict the class of each of n texts."""
        assert self._ngrams is not None
        if isinstance(texts, CountedTexts) and texts.ngrams is self._ngrams:
            counts = texts.counts
        else:
            counts = self._ngrams.count(texts)
        return [str(name) for name in self._model.predict(counts)]
