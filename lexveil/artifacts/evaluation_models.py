"""Loading of the models of the evaluation: the encoder of each data set, and the language model."""

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
    """Load the models that params.yaml names under evaluation.

    Raises:
        MissingArtifactError: if a model of this project was not made.
        RequestError: if an external model cannot be read.
    """
    return Models(_encoder(settings), _language_model(settings))


def _encoder(settings: EvaluationParams) -> Callable[[Sequence[str]], Encoder]:
    """Return a function that makes the encoder of a data set from its clean texts."""
    back_end = ENCODERS[settings.encoder]
    if settings.encoder == TfidfMean.name:
        space = load_embedding("word")
        return lambda texts: back_end.make(space.tokens, space.vectors, texts)
    encoder = back_end.maker(settings)()  # an external model is the same for all data sets
    return lambda _: encoder


def _language_model(settings: EvaluationParams) -> LanguageModel | None:
    """Return the language model for perplexities; None if there was no corpus for its training."""
    if settings.language_model == NgramModel.name:
        return load_language_model()
    return LANGUAGE_MODELS[settings.language_model].maker(settings)()
