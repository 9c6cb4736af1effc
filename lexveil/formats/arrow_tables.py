"""The texts of rows as Arrow columns: no string is made of what only goes from one process to
another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.types import Flags, Ids


class ArrowRows(Sequence[list[str | None]]):
    """The texts of each row, as ``Texts``; lists are made for who asks for them.

    Attributes:
        columns: of the text columns, large strings of valid UTF-8.
    """

    def __init__(self, columns: Sequence[pa.LargeStringArray]) -> None:
        self.columns = tuple(columns)

    def only(self, keep: Flags) -> ArrowRows:
        """The same rows, those without ``keep`` without texts."""
        nothing = pa.scalar(None, pa.large_string())
        return ArrowRows([pc.if_else(pa.array(keep), column, nothing) for column in self.columns])

    def flat(self) -> tuple[pa.LargeStringArray, Ids]:
        """The texts row after row, without nulls, and the number of each one's cell."""
        n, k = len(self), len(self.columns)
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
