"""The text classifier of the TEM paper: the mean of trained vectors of words and word pairs, and
one linear layer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from lexveil.base.errors import RequestError
from lexveil.lab.evaluation.ngrams import TOKEN

# Prefix of class labels. No token begins with it, because a token is letters and digits, or one
# other mark; so no text can contain a label.
LABEL = "#="

EPOCHS = 20
RATE = 0.5
DIMENSIONS = 10
PAIRS = 2_000_000  # hash buckets for pairs of neighbours


class FastText:
    """Text classifier: fastText's supervised mode, through floret (explosion's fork of fastText).

    Source: Joulin et al. (2017), with 10 dimensions, pairs of neighbours, and the largest of the
    learning rates in the paper; 20 epochs as in TEM section 5. TEM has 300 dimensions that start
    from GloVe and are trained by Adam in batches of 64. This class starts from random vectors, and
    trains one text at a time with a falling rate, as Joulin et al. do.

    Words and marks are the same as in the classifier ``linear``, in lower case. Training uses one
    thread, because the result of several threads depends on their timing.
    """

    name: ClassVar[str] = "fasttext"

    def __init__(self, seed: int) -> None:
        """Import the library floret.

        Raises:
            RequestError: if the library does not exist for this version of Python.
        """
        try:
            import floret
        except ModuleNotFoundError:
            raise RequestError(
                "classifier fasttext needs the package floret, which exists for Python 3.11 "
                "and 3.12 only; use one of these versions, or choose another classifier in "
                "params.yaml: evaluation.classifier"
            ) from None
        self._library = floret
        self.seed = seed
        self._names: list[str] = []
        self._model: Any = None

    def fit(self, texts: Sequence[str], classes: Sequence[str]) -> Self:
        """Train the classifier on n texts and the class of each; there must be at least two
        different classes.
        """
        self._names = sorted(set(classes))
        number = {name: i for i, name in enumerate(self._names)}
        # The library reads files only. This file holds the texts, so only its owner may read it,
        # and it is deleted at once.
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="lexveil-fasttext-") as file:
            for text, one in zip(texts, classes, strict=True):
                file.write(f"{LABEL}{number[one]} {_line(text)}\n")
            file.flush()
            self._model = self._library.train_supervised(
                input=file.name,
                epoch=EPOCHS,
                lr=RATE,
                dim=DIMENSIONS,
                wordNgrams=2,
                bucket=PAIRS,
                label=LABEL,
                seed=self.seed,
                thread=1,
                verbose=0,
            )
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predict the class of each of n texts."""
        # A list even for one text: for a single text the library makes a call that NumPy 2 refuses.
        labels, _ = self._model.predict([_line(text) for text in texts])
        return [self._names[int(best[0].removeprefix(LABEL))] for best in labels]


def _line(text: str) -> str:
    return " ".join(TOKEN.findall(text.lower()))
