"""Look-up of packaged models by name, first among the models of the library, then among the models
in the user's data folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lexveil.base import paths
from lexveil.base.errors import ParameterError, RequestError
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.io.artifacts.packaged_model import CARD, PackagedModel
from lexveil.io.artifacts.user_lists import installed_purposes

OWN = "own"  # name of the model that a project's own run made; no packaged model has this name
# endings of files of word vectors
VECTORS = frozenset({".kv", ".vec", ".bin", ".txt", ".w2v", ".model", ".parquet", ".gz", ".zip"})
DEFAULT = "en"  # name of the default model, for a project without a run and outside of projects


def folders() -> tuple[Path, ...]:
    """Return the folders with models, one subfolder per model, in search order."""
    return paths.MODELS, paths.user_data() / "models"


def installed() -> dict[str, PackagedModel]:
    """Return all models by name. If two models have one name, the model of the library takes
    precedence over the model of the user.
    """
    cards = [card for folder in folders() for card in sorted(folder.glob(f"*/{CARD}"))]
    models: dict[str, PackagedModel] = {}
    for card in cards:
        models.setdefault(card.parent.name, PackagedModel(card.parent))
    return models


def find(name: str) -> PackagedModel:
    """Return the packaged model with this name.

    Raises:
        RequestError: if there is no such model; the message lists the existing models.
    """
    models = installed()
    if name not in models:
        if Path(name).suffix in VECTORS or Path(name).is_file():
            raise RequestError(
                f"model {name} is a file, but a model is given by its name; import the "
                f"vectors of the file by `lexveil model add {name} --name NAME --license "
                "LICENCE --language en`, or by lexveil.add_model, and then give NAME"
            )
        there = ", ".join([*models, f"{OWN} (the model of a project that has run)"])
        raise RequestError(f"there is no model {name}; choose from: {there}")
    return models[name]


def find_pinned(named: str, place: str) -> PackagedModel:
    """Return the packaged model that params.yaml names, either as NAME for a model of the library,
    or as NAME@HASH.

    If the hash is named, a run cannot silently get another model of the same name, and DVC, which
    compares params.yaml, notices a change of the model.

    Args:
        named: the value in params.yaml.
        place: the key of that value, for messages.

    Raises:
        ParameterError: if there is no such model, its content does not match the hash, or a model
            of the user is named without a hash.
    """
    name, _, wanted = named.partition("@")
    models = installed()
    if name not in models:
        raise ParameterError(
            f"params.yaml: {place}: there is no model {name} (installed models: "
            f"{', '.join(models) or 'no models'}); import it by `lexveil model add FILE`"
        )
    model = models[name]
    if named not in (model.pinned, name):
        raise ParameterError(
            f"params.yaml: {place} is {named}, but the installed model is {model.pinned}; "
            f"write {model.pinned}, or import the other model again"
        )
    if not wanted and model.folder.parent != paths.MODELS:
        raise ParameterError(
            f"params.yaml: {place}: model {name} is not part of the library; write "
            f"{model.pinned}, so that DVC notices a change of the model"
        )
    return model


def load_words_of(named: str, place: str, segmentation: str = "word") -> WordSpace:
    """Return an embedding that params.yaml names. The name is ``own`` (the embedding of
    ``segmentation``), ``gst`` or ``mst`` for an embedding of this project, or NAME@HASH for the
    single words of a packaged model.

    Raises:
        MissingArtifactError: if the project has not trained the embedding.
        ParameterError: if ``find_pinned`` does not find the model.
    """
    if named == OWN:
        return load_embedding(segmentation)
    if "@" not in named:
        return load_embedding(named)
    return find_pinned(named, place).space("word", as_trained=True)


def files_named(names: Iterable[str]) -> dict[str, Path]:
    """Return the files of installed models and purposes (preserved word scales), by their names in
    privacy records. Other names are skipped.
    """
    models = installed()
    found = dict[str, Path]()
    for name in names:
        folder, _, rest = name.partition("/")
        model, _, file = rest.partition("/")
        if (
            folder == "models"
            and model in models
            and (path := models[model].folder / file).is_file()
        ):
            found[name] = path
        elif folder == "purposes" and (scale := installed_purposes().get(rest.partition("=")[0])):
            found[name] = scale
    return found
