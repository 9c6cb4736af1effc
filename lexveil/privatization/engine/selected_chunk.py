"""A chunk of a user's rows, and which of them are rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lexveil.formats.arrow_tables import ArrowRows
from lexveil.formats.chunks import Chunk, Texts
from lexveil.privatization.engine.batch import Batch
from lexveil.privatization.engine.worker import TOKEN_LOG, token_log_columns
from lexveil.privatization.settings import Settings
from lexveil.types import Flags


@dataclass(frozen=True, slots=True, repr=False)
class SelectedChunk:
    """A chunk, the name of its file (empty if there is one only), and which of its rows are rewritten."""

    file: str
    chunk: Chunk
    keep: Flags

    @classmethod
    def whole(cls, chunk: Chunk, file: str = "") -> SelectedChunk:
        """A chunk of which every row is rewritten."""
        return cls(file, chunk, np.ones(len(chunk), dtype=bool))

    @property
    def texts(self) -> Texts:
        """The texts of all rows; of rows that are not rewritten, none."""
        if self.keep.all():
            return self.chunk.texts
        if isinstance(self.chunk.texts, ArrowRows):
            return self.chunk.texts.only(self.keep)
        nothing: list[str | None] = [None] * (len(self.chunk.texts[0]) if self.chunk.texts else 1)
        return [row if keep else nothing for row, keep in zip(self.chunk.texts, self.keep.tolist(), strict=True)]

    @property
    def batch(self) -> Batch:
        """The texts for a worker; what else is in a row stays in this process."""
        file, first = (self.file,) if self.file else (), self.chunk.first
        keys = [(*file, str(row)) for row in range(first - 1, first - 1 + len(self.chunk))]
        return Batch(self.texts, keys, first, given=self.chunk.spans)


def batches_of(chunks: Iterable[SelectedChunk], for_ledger: bool = False) -> Iterator[tuple[SelectedChunk, Batch]]:
    """Each chunk with its batch, as the engine takes them.

    Args:
        for_ledger: whether rows are charged, to themselves where no column names their subjects.
    """
    for chunk in chunks:
        yield chunk, replace(chunk.batch, for_ledger=for_ledger and chunk.chunk.subjects is None)


def token_log_schema(n_columns: int, settings: Settings) -> pa.Schema:
    """The token log of a user's rows; see ``token_log_columns``."""
    return pa.schema([TOKEN_LOG.field(name) for name in token_log_columns(n_columns, settings)])
