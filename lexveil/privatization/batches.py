"""Documents on their way to a worker: their texts one after the other, and what names the noise of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.detectors.given import GivenSpans
from lexveil.types import Floats, Ids

Texts = list[list[str | None]]  # of each document, one text for each text column


@dataclass(frozen=True, slots=True, repr=False)
class FlatTexts:
    """The texts of consecutive documents, one after the other, without those that are missing.

    Attributes:
        document: (n_texts,) the document of each text, from 0.
        column: (n_texts,) the text column of each.
        n_documents: how many documents, those without text included.
    """

    texts: list[str]
    document: Ids
    column: npt.NDArray[np.int16]
    n_documents: int

    @classmethod
    def of(cls, rows: Texts) -> FlatTexts:
        """Lay documents out."""
        width = len(rows[0]) if rows else 1
        cells = [text for row in rows for text in row]
        present = np.array([cell for cell, text in enumerate(cells) if text is not None], dtype=np.int64)
        texts = [text for text in cells if text is not None]
        return cls(texts, present // width, (present % width).astype(np.int16), len(rows))

    def rows(self, texts: Sequence[str], width: int) -> Texts:
        """The same documents with other texts."""
        rows: Texts = [[None] * width for _ in range(self.n_documents)]
        for text, document, column in zip(texts, self.document.tolist(), self.column.tolist(), strict=True):
            rows[document][column] = text
        return rows


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """Consecutive documents for a worker. They hold source text, and a worker gives none of it back.

    Attributes:
        rows: the texts of each document.
        keys: (n_documents,) what names each document in the run, and with it the noise of a seeded run.
        first_row: the number of the first document, as the token log counts them.
        epsilon: (n_texts,) of each token that pays, from a plan; None if the engine divides the document budget. A plan
            has no shares of classes: all tokens that pay get the same.
        given: spans that came with the documents; None if none did.
    """

    rows: Texts
    keys: Sequence[tuple[str, ...]]
    first_row: int = 0
    epsilon: Floats | None = None
    given: Sequence[GivenSpans] | None = None
