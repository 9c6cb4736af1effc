"""Chunks of consecutive rows of a table, whose size is bounded so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from lexveil.base.types import Flags
    from lexveil.core.detectors.given import GivenSpans

ROWS_OF_A_CHUNK = 2_000  # largest number of rows of a chunk
# number of characters after which a chunk ends, which is a few seconds of the slowest mechanism
CHARACTERS_OF_A_CHUNK = 2**19
# number of cells after which a chunk ends, if rows can have any number of texts
CELLS = 2**18
# largest number of characters of a text, which bounds memory because a text is rewritten in one
# piece
TEXT_LIMIT = 8 * 2**20

# The texts of each row. A text column has one text per row. A column with a path to several texts
# has as many texts per row as the row with the most texts in the chunk.
Texts = Sequence[list[str | None]]


@dataclass(frozen=True, slots=True, repr=False)
class Chunk:
    """Chunk of consecutive rows of a table.

    Attributes:
        first: the number of the chunk's first row in the table, from 1.
        places: the position where each row begins, for messages: a line, or in Parquet a row.
        texts: the texts of each row, one for each text column; None for null.
        subjects: the subject of each row; None if no column names it.
        rest: the other data of the rows, for the writer.
        spans: the spans that a detector found in the texts of each row; None without a column of
            spans.
        file: the name of the chunk's file in a folder; empty if there is only one file.
        selection: flags of the rows that are rewritten; None if all rows are.
        widths: the number of texts per row of each text column; None if every column has one.
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
        """Flags of the rows that are rewritten, (n_rows,)."""
        import numpy as np  # help that lists formats does not need numpy

        return np.ones(len(self), dtype=np.bool_) if self.selection is None else self.selection


class Matches(list[object]):
    """List of all values of a row that match the path of a text column, such as a path into nested
    JSON.
    """


class ParsedRow(NamedTuple):
    """A parsed row that will be part of a chunk; see ``Chunk``.

    Attributes:
        counts: the number of the row's texts that belong to each text column; None if every column
            has one.
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
    """Collect rows into chunks. The boundaries of the chunks depend on the rows alone."""
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
    """Return the texts of a row, padded with nulls so that each text column has the number of texts
    in ``widths``.
    """
    filled = list[str | None]()
    start = 0
    for n, width in zip(counts, widths, strict=True):
        filled += [*texts[start : start + n], *[None] * (width - n)]
        start += n
    return filled


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of an Arrow type contains texts."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def rewritten_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type of rewritten texts, which is the type of the source texts. The index
    type of a dictionary is enlarged, because equal texts become different.
    """
    import pyarrow as pa

    return pa.dictionary(pa.int32(), kind.value_type) if pa.types.is_dictionary(kind) else kind
