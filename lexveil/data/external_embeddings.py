"""`lexveil embeddings`: external word vectors, converted into data/embeddings/NAME/ and tracked by
DVC.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.embeddings import write_embedding
from lexveil.artifacts.external_embeddings import content_hash
from lexveil.data.data_store import NAME, check_project, complete, tracked_replacement
from lexveil.data.model_verification import RESERVED
from lexveil.data.word_vectors import read_model
from lexveil.errors import RequestError, option
from lexveil.formats.messages import shown
from lexveil.runtime.tables import write_json


def add(name: str, file: Path, root: Path, max_words: int | None = None) -> dict[str, object]:
    """`lexveil embeddings add`: check FILE, convert it, and track it; a model of the same name is
    replaced.

    Args:
        name: how params.yaml will call it.
        file: GloVe text, word2vec text or binary, or fastText .vec; gzipped or not.
        root: the project's folder.
        max_words: keep the first so many usable words.

    Returns:
        model: NAME@HASH, as params.yaml names it; replaced: whether one of that name was there; and
            what
        ``describe`` tells.

    Raises:
        RequestError: if the name or the file cannot be used, or data/ holds what DVC has not saved.
            data/ is then as it was.
    """
    if not re.fullmatch(NAME, name) or name in RESERVED:
        raise RequestError(
            f"{shown(name)}: a model's name is of a-z, 0-9, _ and -, and none of "
            f"{', '.join(RESERVED)}"
        )
    if max_words is not None and max_words < 2:
        raise RequestError(f"{option('max_words')}: at least 2 words are needed")
    check_project(root)
    data = root / "data"
    if (root / "data.dvc").exists() and not data.exists():
        raise RequestError(
            f"{shown(data)}: absent, and data.dvc names it; bring it back by `dvc pull data.dvc`"
        )
    model = read_model(file, max_words)
    with tracked_replacement(root) as partial:
        complete(root, partial)
        folder = partial / "embeddings" / name
        replaced = folder.exists()
        shutil.rmtree(folder, ignore_errors=True)
        write_embedding(model.space, folder)
        (n_words, dimensions), digest = model.space.vectors.shape, content_hash(folder)
        facts = {
            "dimensions": dimensions,
            "form": model.form,
            "left_out": model.left_out,
            "n_read": model.n_read,
        }
        write_json(
            {**facts, "dtype": "float32", "hash": digest, "n_tokens": n_words}, folder / "meta.json"
        )
    return {"model": f"{name}@{digest}", "replaced": replaced, **describe(root / paths.model(name))}


def listed(root: Path) -> dict[str, object]:
    """`lexveil embeddings list`: NAME@HASH of every model in data/embeddings, and what is known of
    it.
    """
    check_project(root)
    folders = sorted(path.parent for path in (root / paths.EMBEDDINGS).glob("*/meta.json"))
    return {f"{folder.name}@{content_hash(folder)}": describe(folder) for folder in folders}


def describe(folder: Path) -> dict[str, object]:
    """Words, dimensions, form, entries read, and how many were left out for what reason."""
    facts = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    facts |= {"words": facts["n_tokens"], "read": facts["n_read"]}
    return {key: facts[key] for key in ("words", "dimensions", "form", "read", "left_out")}
