"""`lexveil embeddings`: converts external word vectors into data/embeddings/NAME/ and tracks them
with DVC.
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
    """Check FILE, convert it, and track it, for `lexveil embeddings add`; it replaces a model of
    the same name.

    Args:
        name: name of the model in params.yaml.
        file: GloVe text, word2vec text or binary, or fastText .vec; gzipped or not.
        root: folder of the project.
        max_words: number of usable words to keep, from the beginning of the file; None keeps all.

    Returns:
        model: NAME@HASH for params.yaml; replaced: whether a model of that name existed; and the
            facts of ``describe``.

    Raises:
        RequestError: if the name or the file cannot be used, or data/ holds data that DVC has not
            saved. data/ is then unchanged.
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
        n_words, dimensions = model.space.vectors.shape
        digest = content_hash(folder)
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
    """Return NAME@HASH of every model in data/embeddings with its facts, for `lexveil embeddings
    list`.
    """
    check_project(root)
    folders = sorted(path.parent for path in (root / paths.EMBEDDINGS).glob("*/meta.json"))
    return {f"{folder.name}@{content_hash(folder)}": describe(folder) for folder in folders}


def describe(folder: Path) -> dict[str, object]:
    """Return words, dimensions, form, entries read, and the number of entries left out by
    reason.
    """
    facts = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    facts |= {"words": facts["n_tokens"], "read": facts["n_read"]}
    return {key: facts[key] for key in ("words", "dimensions", "form", "read", "left_out")}
