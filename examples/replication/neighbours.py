"""CLMLDP Table 7: the nearest tokens of the paper's six tokens, and of six tokens of our embedding
of the same kinds.
"""

from __future__ import annotations

import numpy as np

from examples.replication.literature import published_neighbours
from lexveil.base import paths
from lexveil.core.embeddings.word_space import WordSpace, unit_vectors
from lexveil.io.artifacts.embeddings import load_embedding
from lexveil.lab.report.table import Column, Table

N_NEAREST = 5
SEED = 42


def nearest(space: WordSpace, row: int) -> list[str]:
    """Return the tokens most similar to one token by cosine, as gensim's most_similar does."""
    unit = unit_vectors(np.asarray(space.vectors))
    similar = unit @ unit[row]
    similar[row] = -np.inf
    return [space.tokens[number] for number in np.argsort(-similar)[:N_NEAREST].tolist()]


def table_7() -> tuple[Table, int]:
    """Return a table of the paper's six tokens with the paper's neighbours and ours, and of two
    tokens of each length, drawn at random from our embedding.

    Returns:
        The table, and the number of printed neighbours that our embedding finds, too.
    """
    space = load_embedding("gst")
    number = {token: row for row, token in enumerate(space.tokens)}
    rows = list[dict[str, object]]()
    n_remade = 0
    for token, theirs in published_neighbours().items():
        ours = nearest(space, number[token]) if token in number else []
        n_remade += len(ours)
        shown = (
            ", ".join(ours)
            or f"not among the {len(space.tokens):,} tokens of {paths.embedding('gst').name}"
        )
        rows.append({"token": token, "theirs": ", ".join(theirs), "ours": shown})
    rng = np.random.default_rng(SEED)
    for size in (1, 2, 3):
        own = np.flatnonzero(space.n_words == size)
        for row in rng.choice(own, size=min(2, len(own)), replace=False).tolist():
            ours = nearest(space, row)
            rows.append({"token": space.tokens[row], "theirs": None, "ours": ", ".join(ours)})
    heads = {"token": "token", "theirs": "nearest in CLMLDP Table 7", "ours": "nearest here"}
    return Table("table-7", [Column(key, head) for key, head in heads.items()], rows), n_remade
