"""Packaged models by name: those that ship with the library, then those in the user's data
folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lexveil import paths
from lexveil.artifacts import purpose_files
from lexveil.artifacts.packaged_model import CARD, PackagedModel
from lexveil.errors import RequestError

OWN = "own"  # what a project's own run made; no packaged model has this name
# endings of files of word vectors
VECTORS = frozenset({".kv", ".vec", ".bin", ".txt", ".w2v", ".model", ".parquet", ".gz", ".zip"})
DEFAULT = "en"  # where a project has no run, or there is no project


def folders() -> tuple[Path, ...]:
    """Return the folders with models, one subfolder per model, in search order."""
    return paths.MODELS, paths.user_data() / "models"


def installed() -> dict[str, PackagedModel]:
    """Return all models by name; a model that ships takes precedence over a model of the user."""
    cards = [card for folder in folders() for card in sorted(folder.glob(f"*/{CARD}"))]
    models: dict[str, PackagedModel] = {}
    for card in cards:
        models.setdefault(card.parent.name, PackagedModel(card.parent))
    return models


def find(name: str) -> PackagedModel:
    """Return the model with this name.

    Raises:
        RequestError: if there is none; the message lists the existing models.
    """
    models = installed()
    if name not in models:
        if Path(name).suffix in VECTORS or Path(name).is_file():
            raise RequestError(
                f"model {name}: a file, and a model has a name; make one of its vectors by "
                f"`lexveil model add {name} --name NAME --license LICENCE --language en`, or "
                "lexveil.add_model, and name that"
            )
        there = ", ".join([*models, f"{OWN} (of a project that has run)"])
        raise RequestError(f"there is no model {name}; there are {there}")
    return models[name]


def files_named(names: Iterable[str]) -> dict[str, Path]:
    """Return the files of installed models and purposes by their names in records; other names are
    skipped.
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
        elif folder == "purposes" and (
            scale := purpose_files.installed().get(rest.partition("=")[0])
        ):
            found[name] = scale
    return found
