"""Sequence of texts stored as an Arrow array of bytes. Python strings are created only on
access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from lexveil.base.types import Bytes, Int64

if TYPE_CHECKING:
    import pyarrow as pa


class Strings(Sequence[str]):
    """Sequence of strings without nulls, backed by an Arrow array.

    Attributes:
        array: Arrow array of large strings.
    """

    def __init__(self, array: pa.LargeStringArray) -> None:
        self.array = array

    @classmethod
    def of(cls, letters: Bytes, offsets: Int64) -> Strings:
        """Build strings from consecutive UTF-8 bytes and (n + 1,) byte offsets."""
        import pyarrow as pa

        buffers = (
            pa.py_buffer(np.ascontiguousarray(offsets)),
            pa.py_buffer(np.ascontiguousarray(letters)),
        )
        return cls(pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers))

    @cached_property
    def listed(self) -> list[str]:
        """All strings as a Python list."""
        listed: list[str] = self.array.to_pylist()
        return listed

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.listed[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self.listed)

    def __eq__(self, other: object) -> bool:
        return self.listed == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:  # must not show texts
        return f"Strings(n={len(self)})"

    def __reduce__(self) -> tuple[type[Strings], tuple[pa.LargeStringArray]]:
        return Strings, (self.array,)


def letters_of(array: pa.LargeStringArray) -> tuple[Bytes, Int64]:
    """Return the UTF-8 bytes of a string array and the (n + 1,) byte offsets of the strings; a
    null is treated as an empty string.
    """
    if not len(array):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, positions, content = array.buffers()
    offsets = np.frombuffer(positions, np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(content if content is not None else b"", np.uint8), offsets
