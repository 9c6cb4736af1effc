"""Registry of the models (back ends) that the evaluation can use, by their names in params.yaml."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from lexveil.core.language_models.base import Classifier, Encoder, LanguageModel
from lexveil.core.language_models.language_model import NgramModel
from lexveil.core.language_models.smollm2 import SmolLm2
from lexveil.core.text.piece_models import PieceModel
from lexveil.lab.evaluation.classifier import Linear
from lexveil.lab.evaluation.encoder import TfidfMean
from lexveil.lab.evaluation.fasttext import FastText
from lexveil.lab.evaluation.gpt2 import Gpt2
from lexveil.lab.evaluation.minilm import MiniLm
from lexveil.lab.evaluation.transformer import Transformer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BackEnd(Generic[T]):
    """One entry of a registry of evaluation models.

    Attributes:
        make: builds the back end; the comment above each table names the arguments. The function
            imports its libraries only when it is called.
        parameter: parameter of section ``evaluation`` that names the folder of the model, which
            ``make`` takes as ``folder``; None if the back end needs no folder.
    """

    make: Callable[..., T]
    parameter: str | None = None

    def maker(self, settings: object) -> Callable[..., T]:
        """Return the function ``make``; if it needs a model folder, the folder that ``settings``
        (section ``evaluation``) names is bound to it.
        """
        return (
            partial(self.make, folder=getattr(settings, self.parameter))
            if self.parameter
            else self.make
        )


# Each classifier is built from a seed.
CLASSIFIERS: dict[str, BackEnd[Classifier]] = {
    "linear": BackEnd(Linear),
    "fasttext": BackEnd(FastText),
    "transformer": BackEnd(Transformer, "transformer_model"),
}
# tfidf_mean is built from words, vectors and clean texts; other encoders take no arguments.
ENCODERS: dict[str, BackEnd[Encoder]] = {
    "tfidf_mean": BackEnd(TfidfMean.fit),
    "minilm": BackEnd(MiniLm),
}
# kneser_ney is built from n-grams and words (artifacts/language_models.py); other language models
# take no such arguments.
LANGUAGE_MODELS: dict[str, BackEnd[LanguageModel]] = {
    "kneser_ney": BackEnd(NgramModel),
    "gpt2": BackEnd(Gpt2, "gpt2_model"),
}
# Language models that adversaries may use besides the n-grams of the corpus; they take no
# arguments.
READER_MODELS: dict[str, BackEnd[PieceModel]] = {"smollm2": BackEnd(SmolLm2)}
