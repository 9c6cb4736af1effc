"""What a worker gives back of a batch, and batches that are rewritten in several parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lexveil.formats.chunks import Texts
from lexveil.privatization.engine.batch import Batch, joined_rows
from lexveil.privatization.engine.tally import Tally
from lexveil.types import Floats

T = TypeVar("T")

PART = 2**16  # characters for a worker at a time where each takes long, so that all end at about the same time


@dataclass(frozen=True, slots=True, repr=False)
class RewrittenChunk:
    """What a worker gives back of a batch: no source text, but for the texts that were left unchanged.

    Attributes:
        texts: of each document.
        tokens: what happened to each token, with the columns of ``TOKEN_LOG``; no source word.
        spent: (n_documents,) epsilon spent on each document.
        per_token: (n_documents,) the largest epsilon of its tokens.
    """

    texts: Texts
    tokens: pa.Table
    tally: Tally
    spent: Floats
    per_token: Floats


def in_parts(batches: Iterable[tuple[T, Batch]]) -> Iterator[tuple[T | None, Batch]]:
    """Each batch as smaller ones, the last of them with the batch's companion."""
    for companion, batch in batches:
        *parts, last = batch.parts(PART)
        for part in parts:
            yield None, part
        yield companion, last


def whole(parts: Iterable[tuple[T | None, RewrittenChunk]]) -> Iterator[tuple[T, RewrittenChunk]]:
    """What was rewritten of each batch, from its parts."""
    gathered: list[RewrittenChunk] = []
    for companion, part in parts:
        gathered.append(part)
        if companion is not None:
            yield companion, gathered[0] if len(gathered) == 1 else _joined(gathered)
            gathered = []


def _joined(parts: Sequence[RewrittenChunk]) -> RewrittenChunk:
    tally = Tally()
    for part in parts:
        tally.merge(part.tally)
    return RewrittenChunk(
        joined_rows([part.texts for part in parts]),
        pa.concat_tables([part.tokens for part in parts]).combine_chunks(),
        tally,
        np.concatenate([part.spent for part in parts]),
        np.concatenate([part.per_token for part in parts]),
    )
