"""Texts of table rows as Arrow columns, so that texts pass from one process to another without
becoming Python strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.types import Flags, Ids


class ArrowRows(Sequence[list[str | None]]):
    """The texts of each row, as a ``Texts`` sequence that is backed by Arrow. A row becomes a list
    only when it is read.

    Attributes:
        columns: the text columns, as large strings of valid UTF-8.
    """

    def __init__(self, columns: Sequence[pa.LargeStringArray]) -> None:
        self.columns = tuple(columns)

    def only(self, keep: Flags) -> ArrowRows:
        """Return all rows, in which the texts are null wherever ``keep`` is false."""
        nothing = pa.scalar(None, pa.large_string())
        return ArrowRows([pc.if_else(pa.array(keep), column, nothing) for column in self.columns])

    def flat(self) -> tuple[pa.LargeStringArray, Ids]:
        """Return the non-null texts, row after row, and the cell number of each text."""
        n = len(self)
        k = len(self.columns)
        if k == 1:
            cells = self.columns[0]
        else:
            order = (np.arange(n)[:, None] + n * np.arange(k)).ravel()
            cells = pa.concat_arrays(self.columns).take(pa.array(order))
        if not cells.null_count:
            return cells, np.arange(n * k)
        present = pc.is_valid(cells)
        return cells.filter(present), np.flatnonzero(present.to_numpy(zero_copy_only=False))

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, index: int) -> list[str | None]: ...
    @overload
    def __getitem__(self, index: slice) -> ArrowRows: ...
    def __getitem__(self, index: int | slice) -> list[str | None] | ArrowRows:
        if isinstance(index, slice):
            return ArrowRows([column[index] for column in self.columns])
        return [column[index].as_py() for column in self.columns]

    def __iter__(self) -> Iterator[list[str | None]]:
        return map(list, zip(*(column.to_pylist() for column in self.columns), strict=True))

    def __eq__(self, other: object) -> bool:
        return [*self] == [*other] if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:  # no text
        return f"ArrowRows(n={len(self)})"

    def __reduce__(self) -> tuple[type[ArrowRows], tuple[tuple[pa.LargeStringArray, ...]]]:
        return ArrowRows, (self.columns,)
