"""`lexveil embeddings`: word models made by others, converted into data/embeddings/NAME/ and tracked by DVC."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.embeddings import write_embedding
from lexveil.artifacts.external_embeddings import content_hash
from lexveil.data.data_store import NAME, check_project, keep, tracked_replacement
from lexveil.data.default import write_default_corpus, write_default_documents
from lexveil.data.word_vectors import read_model
from lexveil.errors import RequestError, option
from lexveil.formats.messages import shown
from lexveil.runtime.tables import write_json

RESERVED = ("own", "word", "gst", "mst", "none")


def add(name: str, file: Path, root: Path, max_words: int | None = None) -> dict[str, object]:
    """`lexveil embeddings add`: check FILE, convert it, and track it; a model of the same name is replaced.

    Args:
        name: how params.yaml will call it.
        file: GloVe text, word2vec text or binary, or fastText .vec; gzipped or not.
        root: the project's folder.
        max_words: keep the first so many usable words.

    Returns:
        model: NAME@HASH, as params.yaml names it; replaced: whether one of that name was there; and what
        ``describe`` tells.

    Raises:
        RequestError: if the name or the file cannot be used, or data/ holds what DVC has not saved. data/ is then as
            it was.
    """
    if not re.fullmatch(NAME, name) or name in RESERVED:
        raise RequestError(
            f"{shown(Path(name))}: no name for a model; it has a-z, 0-9, _ and -, begins with a letter or digit, "
            f"and is none of {', '.join(RESERVED)}"
        )
    if max_words is not None and max_words < 2:
        raise RequestError(f"{option('max_words')}: at least 2 words are needed")
    check_project(root)
    data = root / "data"
    if (root / "data.dvc").exists() and not data.exists():
        raise RequestError(
            f"{shown(data)}: absent, and data.dvc names it; bring it back by `dvc pull data.dvc` or `lexveil run`, "
            "or choose other data by `lexveil data default`"
        )
    model = read_model(file, max_words)
    with tracked_replacement(root) as partial:
        if not keep(data / "documents", partial / "documents"):
            write_default_documents(partial / "documents")
        if not keep(data / "corpus", partial / "corpus"):
            write_default_corpus(partial / "corpus")
        keep(data / "embeddings", partial / "embeddings")
        folder = partial / "embeddings" / name
        replaced = folder.exists()
        shutil.rmtree(folder, ignore_errors=True)
        write_embedding(model.space, folder)
        n_words, dimensions = model.space.vectors.shape
        facts = {
            "dimensions": dimensions,
            "dtype": "float32",
            "form": model.form,
            "hash": content_hash(folder),
            "left_out": model.left_out,
            "n_read": model.n_read,
            "n_tokens": n_words,
        }
        write_json(facts, folder / "meta.json")
    return {"model": f"{name}@{facts['hash']}", "replaced": replaced, **describe(root / paths.model(name))}


def listed(root: Path) -> dict[str, object]:
    """`lexveil embeddings list`: NAME@HASH of every model in data/embeddings, and what is known of it."""
    check_project(root)
    folders = sorted(path.parent for path in (root / paths.EMBEDDINGS).glob("*/meta.json"))
    return {f"{folder.name}@{content_hash(folder)}": describe(folder) for folder in folders}


def describe(folder: Path) -> dict[str, object]:
    """Words, dimensions, form, entries read, and how many were left out for what reason."""
    facts = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return {
        "words": facts["n_tokens"],
        "dimensions": facts["dimensions"],
        "form": facts["form"],
        "read": facts["n_read"],
        "left_out": facts["left_out"],
    }
