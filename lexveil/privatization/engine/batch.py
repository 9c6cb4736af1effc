"""Documents on their way to a worker: their texts one after the other, and what names the noise of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lexveil.detectors.given import GivenSpans
from lexveil.formats.arrow_tables import ArrowRows
from lexveil.formats.chunks import Texts
from lexveil.text.strings import Strings, letters_of
from lexveil.types import Floats, Ids


@dataclass(frozen=True, slots=True, repr=False)
class FlatTexts:
    """The texts of consecutive documents, one after the other, without those that are missing.

    Attributes:
        document: (n_texts,) the document of each text, from 0.
        column: (n_texts,) the text column of each.
        n_documents: how many documents, those without text included.
    """

    texts: Sequence[str]
    document: Ids
    column: npt.NDArray[np.int16]
    n_documents: int

    @classmethod
    def of(cls, rows: Texts) -> FlatTexts:
        """Lay documents out."""
        if isinstance(rows, ArrowRows):
            array, number = rows.flat()
            width = len(rows.columns)
            return cls(Strings(array), number // width, (number % width).astype(np.int16), len(rows))
        width = len(rows[0]) if rows else 1
        cells = [text for row in rows for text in row]
        present = np.array([cell for cell, text in enumerate(cells) if text is not None], dtype=np.int64)
        texts = [text for text in cells if text is not None]
        return cls(texts, present // width, (present % width).astype(np.int16), len(rows))

    def rows(self, texts: Sequence[str], width: int) -> Texts:
        """The same documents with other texts."""
        if isinstance(texts, Strings):
            return ArrowRows([self._column(texts, column) for column in range(width)])
        rows: list[list[str | None]] = [[None] * width for _ in range(self.n_documents)]
        for text, document, column in zip(texts, self.document.tolist(), self.column.tolist(), strict=True):
            rows[document][column] = text
        return rows

    def _column(self, texts: Strings, column: int) -> pa.LargeStringArray:
        own = np.flatnonzero(self.column == column)
        if len(own) == self.n_documents == len(texts):
            return texts.array
        number = np.full(self.n_documents, -1)
        number[self.document[own]] = own
        return texts.array.take(pa.array(number, mask=number < 0))


@dataclass(frozen=True, slots=True, repr=False)
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
