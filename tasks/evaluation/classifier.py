"""Classifiers of texts: a protocol and a table of names, so that a stronger one can take the linear one's place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

from tasks.evaluation.back_end import NEURAL, BackEnd

SEPARATOR = "␞"  # a mark that texts do not have; it is a feature of its own, and so are the bigrams across it


class Classifier(Protocol):
    """Learns classes from texts.

    The same seed, texts, classes and order of both give the same predictions, whatever number of threads there is.
    """

    name: ClassVar[str]

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Learn from n texts and the class of each; at least two different classes."""
        ...

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the class of each of n texts."""
        ...


class Linear:
    """TF-IDF and logistic regression, scikit-learn's.

    Features: words and punctuation marks in lower case, and pairs of neighbours, of those that occur in at least two
    of the texts learnt from; (1 + ln tf)·idf with smoothed idf, texts scaled to length 1. Punctuation is a feature
    because a policy may keep it, and then it tells about the author. Layout and capitals are not: rewritten texts have
    none of their own, so what a classifier learnt of them from clean texts would mislead it.

    Loss: multinomial logistic with an L2 penalty (C = 1), by L-BFGS from 0, to a gradient of 1e-4 or 1000 steps. It has
    one minimum, so order and seed move scores by rounding only.

    Memory grows with features × classes; texts that share no feature at all give the most frequent class.
    """

    name: ClassVar[str] = "linear"

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._vectorizer: Any = None
        self._model: Any = None

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Learn from n texts and the class of each; at least two different classes."""
        from sklearn.dummy import DummyClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        self._vectorizer = TfidfVectorizer(
            lowercase=True, token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), min_df=2, sublinear_tf=True
        )
        try:
            features = self._vectorizer.fit_transform(texts)
        except ValueError:  # nothing occurs in two texts: there is no vocabulary
            self._vectorizer, features = None, [[0.0]] * len(texts)
            self._model = DummyClassifier(strategy="most_frequent")
        else:
            self._model = LogisticRegression(C=1.0, tol=1e-4, max_iter=1000, random_state=self.seed)
        # Sums over many features are cut up by threads, and rounded differently by each number of them.
        with threadpool_limits(limits=1):
            self._model.fit(features, classes)
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the class of each of n texts."""
        features = [[0.0]] * len(texts) if self._vectorizer is None else self._vectorizer.transform(texts)
        return [str(name) for name in self._model.predict(features)]


def _fasttext(seed: int) -> Classifier:
    """FastText, from a seed."""
    from tasks.evaluation.fasttext import FastText

    return FastText(seed)


def _transformer(seed: int, folder: str) -> Classifier:
    """Transformer, from a seed and the folder of its model."""
    from tasks.evaluation.transformer import Transformer

    return Transformer(seed, folder)


# Each is made from a seed.
CLASSIFIERS: dict[str, BackEnd[Classifier]] = {
    "linear": BackEnd(Linear),
    "fasttext": BackEnd(_fasttext),
    "transformer": BackEnd(_transformer, NEURAL, "transformer_model"),
}


def joined(texts: Sequence[str], seconds: Sequence[str | None]) -> list[str]:
    """The n texts that are classified: a text, or both of a pair with SEPARATOR between them."""
    return [
        text if second is None else f"{text} {SEPARATOR} {second}" for text, second in zip(texts, seconds, strict=True)
    ]
