"""External word models (data/embeddings/NAME/), which params.yaml names as NAME@HASH.

The hash covers words and vectors. A run that names it cannot silently get another model of the same
name, and DVC, which compares params.yaml, notices a change of the model.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.embeddings import load_embedding, read_space
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import MissingArtifact, RequestError

DIGITS = 12  # digits of a hash: enough to distinguish the models of a project


def content_hash(folder: Path) -> str:
    """Return the first digits of a hash of words.txt and vectors.npy."""
    digest = hashlib.sha256()
    for name in ("words.txt", "vectors.npy"):
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:DIGITS]


def load_model(model: str, segmentation: str = "word") -> WordSpace:
    """Load the model ``own`` (that of ``segmentation``), gst, mst, or NAME@HASH.

    Raises:
        MissingArtifact: if the model does not exist.
        RequestError: if the content of the model NAME does not match HASH.
    """
    if model == "own":
        return load_embedding(segmentation)
    if "@" not in model:
        return load_embedding(model)
    name, _, wanted = model.partition("@")
    folder = paths.model(name)
    try:
        actual = content_hash(folder)
    except FileNotFoundError:
        raise MissingArtifact(
            f"{folder}: not there; import it by `lexveil embeddings add {name} FILE` or fetch "
            "it by `dvc pull data.dvc`"
        ) from None
    if actual != wanted:
        raise RequestError(
            f"{folder} is {name}@{actual}, but params.yaml names {model}; write the first "
            "into params.yaml, "
            "or import the other file again"
        )
    return read_space(folder)
