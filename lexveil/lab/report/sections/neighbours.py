"""Report section "neighbours": some tokens of every embedding with their nearest neighbours, as in
Table 7 of CLMLDP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from lexveil.base import paths
from lexveil.base.runtime.tables import require
from lexveil.core.text.languages.english import STOP_WORDS
from lexveil.io.artifacts.embeddings import load_words
from lexveil.lab.report import formatting
from lexveil.lab.report.data import ReportData

# ranks of the tokens to show: frequent tokens, but not only the most frequent
RANKS = (5, 15, 25)
NEIGHBOURS = 5


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """One token with its number of words, its frequency, and its nearest neighbours in the
    embedding with their distances.
    """

    token: str
    n_words: int
    count: int
    nearest: Sequence[tuple[str, float]]


def choose(
    tokens: Sequence[str],
    n_words: int,
    stop_words: Set[str],
    ranks: Sequence[int],
    limit: int = 200_000,
) -> list[int]:
    """Choose tokens to show: those at certain frequency ranks among the tokens of ``n_words``
    words.

    Tokens with a stop word, or with a part that has no letter, are skipped. If there are too few
    tokens for a rank, the last token is taken.

    Args:
        tokens: tokens by falling frequency; ``_`` joins the words of a token.
        ranks: ranks in rising order, from 1.
        limit: largest number of tokens to look at.

    Returns:
        Rows of the chosen tokens, at most one per rank, without repeats.
    """
    rows: list[int] = []
    for row, token in enumerate(tokens[:limit]):
        words = token.split("_")
        if len(words) != n_words or any(
            word in stop_words or not any(map(str.isalpha, word)) for word in words
        ):
            continue
        rows.append(row)
        if len(rows) == ranks[-1]:
            break
    return list(dict.fromkeys(rows[min(rank, len(rows)) - 1] for rank in ranks)) if rows else []


def neighbourhoods(segmentation: str) -> list[Neighbourhood]:
    """Select some frequent tokens of one, two and three words, and return them with their nearest
    neighbours in the embedding.
    """
    tokens = load_words(segmentation)
    file = require(paths.embedding(segmentation) / "counts.npy", f"train_embeddings@{segmentation}")
    counts = np.load(file, mmap_mode="r", allow_pickle=False)
    ids, distances = (each[:, :NEIGHBOURS] for each in ReportData.distances(segmentation))
    return [
        Neighbourhood(
            tokens[row],
            n_words,
            int(counts[row]),
            [
                (tokens[near], float(distance))
                for near, distance in zip(ids[row], distances[row], strict=True)
            ],
        )
        for n_words in (1, 2, 3)
        for row in choose(tokens, n_words, STOP_WORDS, RANKS)
    ]


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "neighbours"."""
    return {
        "ranks": formatting.listed([f"{rank}th" for rank in RANKS]),
        "neighbours": {
            name: neighbourhoods(name) for name in sorted(report.params.grid.segmentations)
        },
    }
