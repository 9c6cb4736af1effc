"""Chunks: consecutive rows of a table, cut so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from lexveil.base.types import Flags
    from lexveil.core.detectors.given import GivenSpans

ROWS_OF_A_CHUNK = 2_000  # of a chunk, at most
# of the texts of a chunk, after which it ends: a few seconds of the slowest mechanism
CHARACTERS_OF_A_CHUNK = 2**19
# cells of a chunk, after which it ends, where rows have any number of texts
CELLS = 2**18
# characters; a text is rewritten in one piece, and this bounds what that takes
TEXT_LIMIT = 8 * 2**20

# Of each row, one text for each text column; of a column that finds several, so many as any row of
# the chunk has.
Texts = Sequence[list[str | None]]


@dataclass(frozen=True, slots=True, repr=False)
class Chunk:
    """Consecutive rows of a table.

    Attributes:
        first: the number of its first row in the table, from 1.
        places: the places where each row begins, for messages: a line, in Parquet a row.
        texts: the texts of each row, one for each text column; None for null.
        subjects: the subject of each row; None if no column names it.
        rest: the rest of the rows, for the writer.
        spans: the spans that a detector found in the texts of each row; None without a column of
            spans.
        file: the name of its file in a folder; empty if there is one only.
        selection: the rows that are rewritten; None if all are.
        widths: how many of the texts of a row are of each text column; None: one of each.
    """

    first: int
    places: Sequence[int]
    texts: Texts
    subjects: list[str] | None
    rest: Any
    spans: list[GivenSpans] | None = None
    file: str = ""
    selection: Flags | None = None
    widths: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def is_selected(self) -> Flags:
        """(n_rows,) which rows are rewritten."""
        import numpy as np  # help that lists formats comes without it

        return np.ones(len(self), dtype=np.bool_) if self.selection is None else self.selection


class Matches(list[object]):
    """All values that the path of a text column finds in a row."""


class ParsedRow(NamedTuple):
    """A row on its way into a chunk; see ``Chunk``.

    Attributes:
        counts: how many of its texts are of each text column; None: one of each.
    """

    line: int
    texts: list[str | None]
    subject: str | None
    rest: Any
    spans: GivenSpans | None = None
    counts: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        return f"ParsedRow(line={self.line})"


def gather(rows: Iterable[ParsedRow], has_subjects: bool) -> Iterator[Chunk]:
    """Cut rows into chunks. The positions of the cuts depend on the rows alone."""
    first = 1
    gathered = list[ParsedRow]()
    characters = 0
    widest = 0

    def chunk() -> Chunk:
        subjects = [row.subject or "" for row in gathered] if has_subjects else None
        places = [row.line for row in gathered]
        texts = [row.texts for row in gathered]
        spans = None if gathered[0].spans is None else [row.spans or [] for row in gathered]
        rest = [row.rest for row in gathered]
        if gathered[0].counts is None:
            return Chunk(first, places, texts, subjects, rest, spans)
        counts = [row.counts or () for row in gathered]
        widths = tuple(max(1, *of_column) for of_column in zip(*counts, strict=True))
        texts = [_filled(row, n, widths) for row, n in zip(texts, counts, strict=True)]
        return Chunk(first, places, texts, subjects, rest, spans, widths=widths)

    for row in rows:
        gathered.append(row)
        characters += sum(len(text) for text in row.texts if text is not None)
        widest = max(widest, len(row.texts))
        is_wide = row.counts is not None and len(gathered) * widest >= CELLS
        if len(gathered) == ROWS_OF_A_CHUNK or characters >= CHARACTERS_OF_A_CHUNK or is_wide:
            yield chunk()
            first = first + len(gathered)
            gathered = []
            characters = 0
            widest = 0
    if gathered:
        yield chunk()


def _filled(
    texts: Sequence[str | None], counts: Sequence[int], widths: Sequence[int]
) -> list[str | None]:
    """Return the texts of a row, with nulls added after the texts of each column until the column
    has the number of texts in ``widths``.
    """
    filled = list[str | None]()
    start = 0
    for n, width in zip(counts, widths, strict=True):
        filled += [*texts[start : start + n], *[None] * (width - n)]
        start += n
    return filled


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of an Arrow type holds texts."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def rewritten_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of rewritten texts: that of the texts. A dictionary gets room, because equal
    texts become different.
    """
    import pyarrow as pa

    return pa.dictionary(pa.int32(), kind.value_type) if pa.types.is_dictionary(kind) else kind
