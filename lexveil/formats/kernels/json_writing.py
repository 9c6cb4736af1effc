# ruff: noqa: PLR1714 - a set would be made anew for every byte
"""JSON lines as bytes, with other texts."""

from __future__ import annotations

import numpy as np

from lexveil.text.kernels.characters import kernel
from lexveil.types import Bytes, Flags, Int64


@kernel
def _quoted(letters: Bytes, at: int, end: int, out: Bytes, to: int) -> int:  # pragma: no cover - compiled
    """Write a string as ``json.dumps`` does with ``ensure_ascii=False``; where the next byte goes."""
    out[to] = 34
    to += 1
    for i in range(at, end):
        byte = letters[i]
        if byte >= 32 and byte != 34 and byte != 92:
            out[to] = byte
            to += 1
            continue
        out[to] = 92
        short = np.uint8(0)
        if byte == 34 or byte == 92:
            short = byte
        elif byte == 10:
            short = np.uint8(110)
        elif byte == 13:
            short = np.uint8(114)
        elif byte == 9:
            short = np.uint8(116)
        elif byte == 8:
            short = np.uint8(98)
        elif byte == 12:
            short = np.uint8(102)
        if short:
            out[to + 1] = short
            to += 2
            continue
        low = byte & np.uint8(15)
        out[to + 1], out[to + 2], out[to + 3], out[to + 4] = 117, 48, 48, 48 + (byte >> 4)
        out[to + 5] = low + 48 if low < 10 else low + 87
        to += 6
    out[to] = 34
    return to + 1


@kernel
def write_rows(
    data: Bytes,
    lines: Int64,
    spans: Int64,
    rows: Int64,
    letters: Bytes,
    begins: Int64,
    ends: Int64,
    valid: Flags,
    out: Bytes,
) -> int:  # pragma: no cover - compiled
    """Write chosen rows with other texts, each ended by a line feed; the number of bytes written.

    Args:
        lines: (n, 2) where each row stands in ``data``.
        spans: (n, k, 2) where its texts do.
        rows: the chosen rows.
        letters, begins, ends: the other texts, column after column, and (k * n,) where each lies.
        valid: (k * n,) which of them are there; others are null.
        out: room for all of it.
    """
    to = 0
    n, k = len(lines), spans.shape[1]
    for row in rows:
        at = lines[row, 0]
        for _ in range(k):
            column = -1
            for other in range(k):  # the next in the order of the line
                start = spans[row, other, 0]
                if start >= at and (column < 0 or start < spans[row, column, 0]):
                    column = other
            for i in range(at, spans[row, column, 0]):
                out[to] = data[i]
                to += 1
            text = column * n + row
            if valid[text]:
                to = _quoted(letters, begins[text], ends[text], out, to)
            else:
                out[to], out[to + 1], out[to + 2], out[to + 3] = 110, 117, 108, 108
                to += 4
            at = int(spans[row, column, 1])
        for i in range(at, lines[row, 1]):
            out[to] = data[i]
            to += 1
        if data[lines[row, 1] - 1] != 10:
            out[to] = 10
            to += 1
    return to


@kernel
def count_escapes(letters: Bytes) -> int:  # pragma: no cover - compiled
    """Bytes that take more than one as JSON."""
    n = 0
    for byte in letters:
        n += byte < 32 or byte == 34 or byte == 92
    return n
