"""`lexveil embeddings`: word models made by others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import Count, Json, Wait, actions
from lexveil.cli.output import in_project, show
from lexveil.runtime.project import build_lock

embeddings = actions(
    "embeddings",
    """Bring in word models made by others: GloVe, word2vec, fastText.

    Checks a file of word vectors, brings its words to the tokenizer's form, and keeps it in
    data/embeddings/NAME, which data.dvc tracks. Prints NAME@HASH; that goes into params.yaml:
    word_orders.models (for 1-Diffractor), embeddings.word_model (for S1).

        lexveil embeddings add glove glove.6B.100d.txt --max-words 100000
        lexveil embeddings list
    """,
)


@embeddings.command
def add(
    name: Annotated[str, Parameter(name="NAME")],
    file: Annotated[Path, Parameter(name="FILE")],
    /,
    *,
    max_words: Count | None = None,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """GloVe text, word2vec text or binary, fastText .vec; gzipped or not.

    Args:
        name: how params.yaml calls it; one that is there is replaced
        file: the file of vectors
        max_words: keep the first N usable words (frequent ones first)
    """
    file = file.absolute()
    root = in_project()
    from lexveil.data import external_embeddings

    with build_lock(wait):
        show(external_embeddings.add(name, file, root, max_words), json)
    return 0


@embeddings.command(name="list")
def list_models(*, json: Json = False) -> int:
    """The models that are there."""
    root = in_project()
    from lexveil.data import external_embeddings

    show(external_embeddings.listed(root), json)
    return 0
