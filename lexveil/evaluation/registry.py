"""The back ends of the evaluation, by the names that params.yaml gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from lexveil.evaluation.base import Classifier, Encoder, LanguageModel
from lexveil.evaluation.classifier import Linear
from lexveil.evaluation.encoder import TfidfMean
from lexveil.evaluation.fasttext import FastText
from lexveil.evaluation.gpt2 import Gpt2
from lexveil.evaluation.language_model import NgramModel
from lexveil.evaluation.minilm import MiniLm
from lexveil.evaluation.smollm2 import SmolLm2
from lexveil.evaluation.transformer import Transformer
from lexveil.text.piece_models import PieceModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BackEnd(Generic[T]):
    """One entry of a table of back ends.

    Attributes:
        make: builds it; its docstring says from what. It imports its libraries only when it is
            called.
        parameter: of section ``evaluation``, which names the folder of its model; None if it needs
            none. ``make`` then takes this folder as ``folder``.
    """

    make: Callable[..., T]
    parameter: str | None = None

    def maker(self, settings: object) -> Callable[..., T]:
        """``make``, with the folder that ``settings`` (section ``evaluation``) names, if it needs
        one.
        """
        return (
            partial(self.make, folder=getattr(settings, self.parameter))
            if self.parameter
            else self.make
        )


# Each is made from a seed.
CLASSIFIERS: dict[str, BackEnd[Classifier]] = {
    "linear": BackEnd(Linear),
    "fasttext": BackEnd(FastText),
    "transformer": BackEnd(Transformer, "transformer_model"),
}
# The first is made from words, vectors and clean texts, others from nothing.
ENCODERS: dict[str, BackEnd[Encoder]] = {
    "tfidf_mean": BackEnd(TfidfMean.fit),
    "minilm": BackEnd(MiniLm),
}
# The first is made from n-grams and words (artifacts/language_models.py), others from nothing else.
LANGUAGE_MODELS: dict[str, BackEnd[LanguageModel]] = {
    "kneser_ney": BackEnd(NgramModel),
    "gpt2": BackEnd(Gpt2, "gpt2_model"),
}
# Of adversaries, beside the n-grams of the corpus. Each is made from nothing.
READER_MODELS: dict[str, BackEnd[PieceModel]] = {"smollm2": BackEnd(SmolLm2)}
