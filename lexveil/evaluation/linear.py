"""TF-IDF and logistic regression over n-grams that are already counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy.typing as npt
from scipy.sparse import csr_array

from lexveil.evaluation.ngrams import Tfidf
from lexveil.types import Floats


class TfidfLogistic:
    """What ``classifier.Linear`` is made of; it has probabilities, too.

    Loss: multinomial logistic with an L2 penalty (C = 1), by L-BFGS from 0, to a gradient of 1e-4 or 1000 steps.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._weights: Tfidf | None = None
        self._model: Any = None

    def fit(self, features: csr_array, labels: Sequence[Any] | npt.NDArray[Any]) -> Self:
        """Learn from the counts of n texts, (n, m), and their classes, (n,); at least two different ones."""
        from sklearn.dummy import DummyClassifier
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        self._weights = Tfidf.fit(features)
        if self._weights.kept.any():
            self._model = LogisticRegression(C=1.0, tol=1e-4, max_iter=1000, random_state=self.seed)
        else:  # nothing occurs in two texts
            self._model = DummyClassifier(strategy="most_frequent")
        # Sums over many features are cut up by threads, and rounded differently by each number of them.
        with threadpool_limits(limits=1):
            self._model.fit(self._weights.transform(features), labels)
        return self

    def predict(self, features: csr_array) -> npt.NDArray[Any]:
        """The class of each of n texts, (n,)."""
        predicted: npt.NDArray[Any] = self._model.predict(self._features(features))
        return predicted

    def predict_proba(self, features: csr_array) -> Floats:
        """(n, c) probabilities of the classes, ascending."""
        probability: Floats = self._model.predict_proba(self._features(features))
        return probability

    def _features(self, counts: csr_array) -> csr_array:
        assert self._weights is not None
        return self._weights.transform(counts)
