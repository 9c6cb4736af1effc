"""Some tokens of every embedding with their nearest neighbours, in the form of CLMLDP Table 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import load_words
from lexveil.report import formatting
from lexveil.report.data import ReportData
from lexveil.runtime.tables import require
from lexveil.text.languages.english import STOP_WORDS

# of the tokens shown with their neighbours: frequent ones, and not only the most frequent
RANKS = (5, 15, 25)
NEIGHBOURS = 5


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """One token, its number of words, how often it occurs, and its nearest tokens with their
    distances.
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
    """Choose tokens to show: the ones at ``ranks`` among those of ``n_words`` words, counted from
    the most frequent.

    Tokens with a stop word, or with a part that has no letter, are passed over. Where there are too
    few, the last one is taken instead.

    Args:
        tokens: by falling frequency; a token joins its words by ``_``.
        ranks: rising, from 1.
        limit: how many tokens are looked at, at most.

    Returns:
        Rows, at most one per rank, without repeats.
    """
    found: list[int] = []
    for row, token in enumerate(tokens[:limit]):
        words = token.split("_")
        if len(words) != n_words or any(
            word in stop_words or not any(map(str.isalpha, word)) for word in words
        ):
            continue
        found.append(row)
        if len(found) == ranks[-1]:
            break
    return list(dict.fromkeys(found[min(rank, len(found)) - 1] for rank in ranks)) if found else []


def neighbourhoods(segmentation: str) -> list[Neighbourhood]:
    """Some frequent tokens of every length with their nearest neighbours."""
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
    """What the section shows."""
    return {
        "ranks": formatting.listed([f"{rank}th" for rank in RANKS]),
        "neighbours": {
            name: neighbourhoods(name) for name in sorted(report.params.grid.segmentations)
        },
    }
