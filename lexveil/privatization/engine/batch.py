"""Documents on their way to a worker and back: their texts, what names the noise of each, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.accounting.subject_keys import keys_of_columns, text_keys
from lexveil.detectors.given import GivenSpans
from lexveil.formats.arrow_tables import ArrowRows
from lexveil.formats.chunks import Chunk, Texts
from lexveil.privatization.engine.counts import Tally
from lexveil.text.spans import Span
from lexveil.text.strings import Strings, letters_of
from lexveil.types import Floats, Ids

T = TypeVar("T")

PART = 2**16  # characters for a worker at a time where each takes long, so that all end at about the same time


@dataclass(frozen=True, repr=False)
class Batch:
    """Consecutive documents for a worker. They hold source text, and a worker gives none of it back.

    Attributes:
        rows: the texts of each document.
        keys: (n_documents,) what names each document in the run, and with it the noise of a seeded run.
        first_row: the number of the first document, as the token log counts them.
        epsilon: (n_texts,) of each token that pays, from a plan; None if the engine divides the document budget. A plan
            has no shares of classes: all tokens that pay get the same.
        for_ledger: whether who counts it also works out the keys of its rows by their texts.
        given: spans that came with the documents; None if none did.
    """

    rows: Texts
    keys: Sequence[tuple[str, ...]]
    first_row: int = 0
    epsilon: Floats | None = None
    for_ledger: bool = False
    given: Sequence[GivenSpans] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _flat(self) -> tuple[Sequence[str], Ids, npt.NDArray[np.int16]]:
        if isinstance(self.rows, ArrowRows):
            array, number = self.rows.flat()
            width = len(self.rows.columns)
            return Strings(array), number // width, (number % width).astype(np.int16)
        width = len(self.rows[0]) if self.rows else 1
        cells = [text for row in self.rows for text in row]
        present = np.array([cell for cell, text in enumerate(cells) if text is not None], dtype=np.int64)
        texts = [text for text in cells if text is not None]
        return texts, present // width, (present % width).astype(np.int16)

    @property
    def texts(self) -> Sequence[str]:
        """(n_texts,) the texts of all documents, one after the other, without those that are missing."""
        return self._flat[0]

    @property
    def document(self) -> Ids:
        """(n_texts,) the document of each text, from 0."""
        return self._flat[1]

    @property
    def column(self) -> npt.NDArray[np.int16]:
        """(n_texts,) the text column of each."""
        return self._flat[2]

    @property
    def given_spans(self) -> list[tuple[int, Span]]:
        """The spans that came with the documents, each with the number of its text."""
        cells = zip(self.document.tolist(), self.column.tolist(), strict=True)
        number = {cell: text for text, cell in enumerate(cells)} if self.given else {}
        return [
            (number[document, column], span)
            for document, spans in enumerate(self.given or ())
            for column, span in spans
            if (document, column) in number
        ]

    def with_texts(self, texts: Sequence[str], width: int) -> Texts:
        """The rows of the same documents with other texts."""
        if isinstance(texts, Strings):
            return ArrowRows([self._column(texts, column) for column in range(width)])
        rows: list[list[str | None]] = [[None] * width for _ in range(len(self))]
        for text, document, column in zip(texts, self.document.tolist(), self.column.tolist(), strict=True):
            rows[document][column] = text
        return rows

    def _column(self, texts: Strings, column: int) -> pa.LargeStringArray:
        own = np.flatnonzero(self.column == column)
        if len(own) == len(self) == len(texts):
            return texts.array
        number = np.full(len(self), -1)
        number[self.document[own]] = own
        return texts.array.take(pa.array(number, mask=number < 0))

    def parts(self, size: int) -> list[Batch]:
        """The same documents in batches of about so many characters, in order."""
        if self.epsilon is not None:
            return [self]
        ends = np.cumsum(_sizes(self.rows))
        number = np.maximum(ends - 1, 0) // size  # of the part that each document falls into
        cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
        if len(cuts) <= 3 and (not len(ends) or ends[-1] < 2 * size):
            return [self]
        return [
            replace(
                self,
                rows=self.rows[start:end],
                keys=self.keys[start:end],
                first_row=self.first_row + start,
                given=None if self.given is None else self.given[start:end],
            )
            for start, end in pairwise(cuts)
        ]


@dataclass(frozen=True, slots=True, repr=False)
class RewrittenChunk:
    """What a worker gives back of a batch: no source text, but for the texts that were left unchanged.

    Attributes:
        texts: of each document.
        tokens: what happened to each token, with columns of ``TOKEN_LOG``; no source word.
        spent: (n_documents,) epsilon spent on each document.
        per_token: (n_documents,) the largest epsilon of its tokens.
    """

    texts: Texts
    tokens: pa.Table
    tally: Tally
    spent: Floats
    per_token: Floats


def batch_of(chunk: Chunk, *, for_ledger: bool = False) -> Batch:
    """The selected texts of a chunk for a worker; what else is in a row stays in this process.

    Args:
        for_ledger: whether rows are charged, to themselves where no column names their subjects.
    """
    file, first = (chunk.file,) if chunk.file else (), chunk.first
    keys = [(*file, str(row)) for row in range(first - 1, first - 1 + len(chunk))]
    return Batch(
        selected_texts(chunk), keys, first, for_ledger=for_ledger and chunk.subjects is None, given=chunk.spans
    )


def selected_texts(chunk: Chunk) -> Texts:
    """The texts of all rows; of rows that are not rewritten, none."""
    if chunk.selection is None or chunk.selection.all():
        return chunk.texts
    if isinstance(chunk.texts, ArrowRows):
        return chunk.texts.only(chunk.selection)
    nothing: list[str | None] = [None] * (len(chunk.texts[0]) if chunk.texts else 1)
    return [row if keep else nothing for row, keep in zip(chunk.texts, chunk.selection.tolist(), strict=True)]


def split_batches(batches: Iterable[tuple[T, Batch]]) -> Iterator[tuple[T | None, Batch]]:
    """Each batch as smaller ones, the last of them with the batch's companion."""
    for companion, batch in batches:
        *parts, last = batch.parts(PART)
        for part in parts:
            yield None, part
        yield companion, last


def merge_chunks(parts: Iterable[tuple[T | None, RewrittenChunk]]) -> Iterator[tuple[T, RewrittenChunk]]:
    """What was rewritten of each batch, from its parts."""
    waiting: list[RewrittenChunk] = []
    for companion, part in parts:
        waiting.append(part)
        if companion is not None:
            yield companion, joined(waiting)
            waiting = []


def joined(parts: Sequence[RewrittenChunk]) -> RewrittenChunk:
    """One chunk of several that follow each other."""
    if len(parts) == 1:
        return parts[0]
    return RewrittenChunk(
        joined_rows([part.texts for part in parts]),
        pa.concat_tables([part.tokens for part in parts]).combine_chunks(),
        Tally.of(part.tally for part in parts),
        np.concatenate([part.spent for part in parts]),
        np.concatenate([part.per_token for part in parts]),
    )


def joined_rows(parts: Sequence[Texts]) -> Texts:
    """The texts of documents that follow each other."""
    arrow = [part for part in parts if isinstance(part, ArrowRows)]
    if len(arrow) == len(parts):
        return ArrowRows([pa.concat_arrays(columns) for columns in zip(*(part.columns for part in arrow), strict=True)])
    return [row for part in parts for row in part]


def _sizes(rows: Texts) -> Ids:
    """(n_documents,) about how many characters each has."""
    if isinstance(rows, ArrowRows):
        sizes: Ids = np.sum([np.diff(letters_of(column)[1]) for column in rows.columns], axis=0).astype(np.int64)
        return sizes
    return np.array([sum(len(text) for text in row if text is not None) for row in rows], dtype=np.int64)


def keys_of(batch: Batch) -> list[str]:
    """The keys of the documents of a batch by their texts."""
    rows = batch.rows
    return keys_of_columns(rows.columns) if isinstance(rows, ArrowRows) else text_keys(rows)
