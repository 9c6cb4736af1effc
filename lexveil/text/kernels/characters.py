"""Characters of UTF-8 in compiled code: their classes, one bit each, and how to step over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from lexveil.types import Bytes

Classes = npt.NDArray[np.uint16]
Hashes = npt.NDArray[np.uint64]
F = TypeVar("F", bound=Callable[..., Any])

# The classes of characters that the expressions of tokenize.py are made of, one bit each.
WORD, ALPHA, DIGIT, LETTER, JOINER, LOCAL, DOMAIN, MARK = 1, 2, 4, 8, 16, 32, 64, 128
SPACE, BREAK, STOP, CLOSER, CAPITAL, NO_URL, AFTER_URL = 256, 512, 1024, 2048, 4096, 8192, 16384


def kernel(function: F) -> F:
    """Compile a function that makes no array, without counting the uses of arrays.

    Numba counts every array in and out of use at every call, which would more than double the time of the scanner.
    Its own string routines are compiled like this.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False}  # its type hints leave the second out
    return cast(F, numba.njit(**options)(function))


@kernel
def decode(data: Bytes, at: int) -> tuple[np.int64, int]:  # pragma: no cover - compiled
    """Code point of the character at a byte, and its size in bytes. The text is valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    second = np.int64(data[at + 1]) & 0x3F
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, 2
    third = np.int64(data[at + 2]) & 0x3F
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, 3
    return (first & 0x07) << 18 | second << 12 | third << 6 | (np.int64(data[at + 3]) & 0x3F), 4


@kernel
def before(data: Bytes, at: int) -> int:  # pragma: no cover - compiled
    """First byte of the character that ends before ``at``."""
    at -= 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@kernel
def run(data: Bytes, at: int, end: int, classes: Classes, wanted: int) -> int:  # pragma: no cover - compiled
    """Where the run of characters of the wanted class that starts at ``at`` ends; ``at`` if there is none."""
    while at < end:
        code, width = decode(data, at)
        if not classes[code] & wanted:
            break
        at += width
    return at
