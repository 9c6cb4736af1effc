"""Ready-made models of the evaluation: the encoder of every data set, and the language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.language_models import load_language_model
from lexveil.config import EvaluationParams
from lexveil.evaluation.base import Encoder, LanguageModel
from lexveil.evaluation.encoder import TfidfMean
from lexveil.evaluation.language_model import NgramModel
from lexveil.evaluation.metrics.base import Models
from lexveil.evaluation.registry import ENCODERS, LANGUAGE_MODELS


def load_models(settings: EvaluationParams) -> Models:
    """Load what params.yaml: evaluation names.

    Raises:
        MissingArtifact: if a model of this project was not made.
        RequestError: if a model from elsewhere cannot be read.
    """
    return Models(_encoder(settings), _language_model(settings))


def _encoder(settings: EvaluationParams) -> Callable[[Sequence[str]], Encoder]:
    """What makes the encoder of a data set from clean texts of it."""
    back_end = ENCODERS[settings.encoder]
    if settings.encoder == TfidfMean.name:
        space = load_embedding("word")
        return lambda texts: back_end.make(space.tokens, space.vectors, texts)
    encoder = back_end.maker(settings)()  # a model that was made elsewhere is the same for all
    return lambda _: encoder


def _language_model(settings: EvaluationParams) -> LanguageModel | None:
    """The language model that perplexities are taken from; None if there was no corpus to learn
    from.
    """
    if settings.language_model == NgramModel.name:
        return load_language_model()
    return LANGUAGE_MODELS[settings.language_model].maker(settings)()
