"""Loading and storing of the models that the evaluation needs: the encoder of each data set, the
language model, and the membership attack models. The attack models of a data set are stored as a
folder of weights and biases of each layer, without pickles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_directory, require
from lexveil.core.language_models.base import Encoder, LanguageModel
from lexveil.core.language_models.language_model import NgramModel
from lexveil.io.artifacts.embeddings import load_embedding, read_arrays, write_arrays
from lexveil.io.artifacts.language_models import load_language_model
from lexveil.io.config import EvaluationParams
from lexveil.lab.evaluation.encoder import TfidfMean
from lexveil.lab.evaluation.metrics.base import Models
from lexveil.lab.evaluation.metrics.membership import PaperAttacker
from lexveil.lab.evaluation.registry import ENCODERS, LANGUAGE_MODELS

STAGE = "train_attackers"
N_LAYERS = 3


def load_models(settings: EvaluationParams) -> Models:
    """Load the evaluation models that params.yaml names in section evaluation.

    Raises:
        MissingArtifactError: if a model of this project does not exist yet.
        RequestError: if an external model cannot be read.
    """
    return Models(_encoder(settings), _language_model(settings))


def _encoder(settings: EvaluationParams) -> Callable[[Sequence[str]], Encoder]:
    """Return a function that builds the text encoder of a data set from the clean (not rewritten)
    texts of the data set.
    """
    back_end = ENCODERS[settings.encoder]
    if settings.encoder == TfidfMean.name:
        space = load_embedding("word")
        return lambda texts: back_end.make(space.tokens, space.vectors, texts)
    encoder = back_end.maker(settings)()  # an external model is the same for all data sets
    return lambda _: encoder


def _language_model(settings: EvaluationParams) -> LanguageModel | None:
    """Load the language model that computes perplexities; return None if the model was not trained
    because there was no corpus.
    """
    if settings.language_model == NgramModel.name:
        return load_language_model()
    return LANGUAGE_MODELS[settings.language_model].maker(settings)()


def write_attackers(trained: Mapping[str, Sequence[PaperAttacker]], out: Path) -> None:
    """Write the membership attack models of each data set into folder ``out``; the models of one
    data set are stacked in one array per layer.
    """
    with atomic_directory(out) as folder:
        for dataset, models in trained.items():
            (folder / dataset).mkdir()
            arrays = {
                f"{name}_{number + 1}": np.stack([model.layers[number][part] for model in models])
                for number in range(N_LAYERS)
                for part, name in enumerate(("weights", "biases"))
            }
            write_arrays(folder / dataset, arrays)


def load_attackers(dataset: str) -> list[PaperAttacker]:
    """Load the membership attack models of one data set, in the order of their training.

    Raises:
        MissingArtifactError: if the models do not exist yet.
    """
    folder = require(paths.ATTACKERS / dataset, STAGE)
    weights, biases = (
        read_arrays(folder, *(f"{name}_{number + 1}" for number in range(N_LAYERS)))
        for name in ("weights", "biases")
    )
    layers = [list(zip(*arrays, strict=True)) for arrays in zip(weights, biases, strict=True)]
    return [PaperAttacker(0, list(model)) for model in zip(*layers, strict=True)]
