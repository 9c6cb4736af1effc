"""The back ends of the evaluation, by the names that params.yaml gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from lexveil.evaluation.base import Classifier, Encoder, LanguageModel, NextWord
from lexveil.evaluation.classifier import Linear
from lexveil.evaluation.encoder import TfidfMean
from lexveil.evaluation.kneser_ney import train
from lexveil.evaluation.language_model import NgramModel
from lexveil.evaluation.optional_libraries import NEURAL
from lexveil.types import Ids

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BackEnd(Generic[T]):
    """One entry of a table of back ends.

    Attributes:
        make: builds it; its docstring says from what. It imports its libraries only when it is called.
        extra: of pyproject.toml, which brings these libraries; None if they are always there.
        parameter: of section ``evaluation``, which names the folder of its model; None if it needs none. ``make`` then
            takes this folder as ``folder``.
    """

    make: Callable[..., T]
    extra: str | None = None
    parameter: str | None = None

    def maker(self, settings: object) -> Callable[..., T]:
        """``make``, with the folder that ``settings`` (section ``evaluation``) names, if it needs one."""
        return partial(self.make, folder=getattr(settings, self.parameter)) if self.parameter else self.make

    def __call__(self, *arguments: Any, **named: Any) -> T:
        """``make``."""
        return self.make(*arguments, **named)


def _fasttext(seed: int) -> Classifier:
    """FastText, from a seed."""
    from lexveil.evaluation.fasttext import FastText

    return FastText(seed)


def _transformer(seed: int, folder: str) -> Classifier:
    """Transformer, from a seed and the folder of its model."""
    from lexveil.evaluation.transformer import Transformer

    return Transformer(seed, folder)


def _minilm(*_: object) -> Encoder:
    """MiniLm, from nothing; what TfidfMean is made from may be given, so that all are made alike."""
    from lexveil.evaluation.minilm import MiniLm

    return MiniLm()


def _kneser_ney(ids: Ids, offsets: Ids, words: Sequence[str]) -> LanguageModel:
    """NgramModel, trained on sentences of word numbers as ``kneser_ney.train`` takes them, and the words' names."""
    return NgramModel(train(ids, offsets, len(words)), words)


def _gpt2(*_: object, folder: str) -> LanguageModel:
    """Gpt2, from the folder of its model; the corpus may be given, so that all are made alike."""
    from lexveil.evaluation.gpt2 import Gpt2

    return Gpt2(folder)


def _gpt2_words(names: Sequence[str], folder: str) -> NextWord:
    """Gpt2Words, of the names of words, from the folder of its model."""
    from lexveil.evaluation.next_words import Gpt2Words

    return Gpt2Words(names, folder)


# Each is made from a seed.
CLASSIFIERS: dict[str, BackEnd[Classifier]] = {
    "linear": BackEnd(Linear),
    "fasttext": BackEnd(_fasttext),
    "transformer": BackEnd(_transformer, NEURAL, "transformer_model"),
}


# Each is made from words, vectors and clean texts, as TfidfMean.fit takes them.
ENCODERS: dict[str, BackEnd[Encoder]] = {"tfidf_mean": BackEnd(TfidfMean.fit), "minilm": BackEnd(_minilm, NEURAL)}


# Each is made from sentences and words, as _kneser_ney takes them.
LANGUAGE_MODELS: dict[str, BackEnd[LanguageModel]] = {
    "kneser_ney": BackEnd(_kneser_ney),
    "gpt2": BackEnd(_gpt2, NEURAL, "gpt2_model"),
}


# Of readers by context, beside the n-grams of the corpus. Each is made from the names of the words that are guessed.
READERS: dict[str, BackEnd[NextWord]] = {"gpt2": BackEnd(_gpt2_words, NEURAL, "gpt2_model")}
