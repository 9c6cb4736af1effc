"""Compiled insertion of a scored word into a list of the k best words."""

from __future__ import annotations

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Ids


@kernel(nogil=True)
def insert(
    word: int, score: float, ids: Ids, scores: Floats
) -> None:  # pragma: no cover - compiled
    """Insert a word into the k best words, which are ordered by score, then by number."""
    place = len(ids)
    while place > 0 and (
        ids[place - 1] < 0
        or score > scores[place - 1]
        or (score == scores[place - 1] and word < ids[place - 1])
    ):
        if place < len(ids):
            ids[place], scores[place] = ids[place - 1], scores[place - 1]
        place -= 1
    if place < len(ids):
        ids[place] = word
        scores[place] = score
