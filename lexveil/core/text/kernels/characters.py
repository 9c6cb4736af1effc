"""Character classes, one bit each, and compiled functions that step through UTF-8."""

from __future__ import annotations

import functools
import re

import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Bytes

Classes = npt.NDArray[np.uint16]
Hashes = npt.NDArray[np.uint64]

# The classes of characters, one bit each.
WORD = 1
ALPHA = 2
DIGIT = 4
LETTER = 8
JOINER = 16
LOCAL = 32
DOMAIN = 64
MARK = 128
SPACE = 256
BREAK = 512
STOP = 1024
CLOSER = 2048
CAPITAL = 4096
NO_URL = 8192
AFTER_URL = 16384

# Marks that follow a base letter when text is not composed; ``\w`` leaves them out.
MARKS_AFTER = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u06d6-\u06dc"
    r"\u0900-\u0903\u093a-\u094f"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f"
)
# The expression of each class; CAPITAL follows ``str.isupper``.
PATTERNS = {
    WORD: r"\w",
    ALPHA: r"[^\W\d_]",
    DIGIT: r"\d",
    LETTER: rf"[^\W_]|[{MARKS_AFTER}]",
    JOINER: r"['’\-‐‑]",
    LOCAL: r"[\w.+-]",
    DOMAIN: r"[\w-]",
    MARK: r"[.\-!?*=~_]",
    SPACE: r"\s",
    BREAK: r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]",
    STOP: r"[.!?…]",
    CLOSER: r"[\"'”’)\]]",
    NO_URL: r"[\s<>\"]",
    AFTER_URL: r"[\s<>\"'’”.,;:!?)\]}]",
}


@functools.cache
def character_classes() -> Classes:
    """(1114112,) character classes of every code point, according to the Unicode version of this
    interpreter's ``re``.
    """
    points = np.arange(0x110000, dtype=np.uint32)
    # Beyond the first plane only letters and digits have a class; the million other code points are
    # skipped.
    beyond = re.finditer(r"\w+", _text(points[0x10000:]))
    points = np.concatenate(
        [points[:0x10000], *(points[0x10000 + m.start() : 0x10000 + m.end()] for m in beyond)]
    )
    characters = _text(points)
    class_of_point = np.zeros(len(points), dtype=np.uint16)
    for bit, pattern in PATTERNS.items():
        for run in re.finditer(f"(?:{pattern})+", characters):
            class_of_point[run.start() : run.end()] |= bit
    class_of_point[
        [at for at in np.flatnonzero(class_of_point & ALPHA).tolist() if characters[at].isupper()]
    ] |= CAPITAL
    classes = np.zeros(0x110000, dtype=np.uint16)
    classes[points] = class_of_point
    classes.flags.writeable = False
    return classes


def _text(points: npt.NDArray[np.uint32]) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


# Decorator for functions that create no array: without it, numba counts references to every array
# at every call, which would more than double the time of the scanner. Numba compiles its own string
# routines like this.
uncounted = kernel(_nrt=False)


@uncounted
def decode(data: Bytes, at: int) -> tuple[np.int64, int]:  # pragma: no cover - compiled
    """Return the code point of the character that starts at byte ``at``, and its size in bytes. The
    data must be valid UTF-8.
    """
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


@uncounted
def before(data: Bytes, at: int) -> int:  # pragma: no cover - compiled
    """Return the position of the first byte of the character that ends before ``at``."""
    at -= 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@uncounted
def run(
    data: Bytes, at: int, end: int, classes: Classes, wanted: int
) -> int:  # pragma: no cover - compiled
    """Return the position where the run of characters of class ``wanted`` that starts at ``at``
    ends; ``at`` if the run is empty.
    """
    while at < end:
        code, width = decode(data, at)
        if not classes[code] & wanted:
            break
        at += width
    return at
