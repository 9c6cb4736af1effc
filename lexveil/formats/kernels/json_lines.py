"""JSON lines as bytes: where the values of some keys lie, and strings without their escapes.

What is found here is what ``json.loads`` finds. A line with anything else than strings, numbers and literals in one
object, and any line that is not valid, is left to Python, which reads it or says what is wrong with it.
"""

# ruff: noqa: PLR1714 - a set would be made anew for every byte
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.text.kernels.characters import kernel
from lexveil.types import Bytes, Int64

Kinds = npt.NDArray[np.int8]

OTHER, STRING, ESCAPED, NULL = range(4)  # what a value is: a string as it stands, one with escapes, null, or another
ENDED, FULL, UNKNOWN = range(3)  # why scanning stopped: no more lines, enough rows or characters, a line for Python
LINES, ROWS, CHARACTERS = range(3)  # what the scanner counts
LONGEST_NUMBER = 1000  # digits; Python converts some more, and refuses the rest

_VOID = -1


@kernel
def _spaces(data: Bytes, at: int, end: int) -> int:  # pragma: no cover - compiled
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 13 or data[at] == 10):
        at += 1
    return at


@kernel
def _hex(data: Bytes, at: int, end: int) -> int:  # pragma: no cover - compiled
    """The number of four hexadecimal digits, -1 if they are not."""
    if end - at < 4:
        return -1
    value = 0
    for i in range(at, at + 4):
        byte = np.int64(data[i])
        if 48 <= byte <= 57:
            digit = int(byte) - 48
        elif 97 <= (byte | 32) <= 102:
            digit = int(byte | 32) - 87
        else:
            return -1
        value = value * 16 + digit
    return value


@kernel
def _string_end(data: Bytes, at: int, end: int) -> tuple[int, int, bool]:  # pragma: no cover - compiled
    """Where the string that begins after a quotation mark ends: at its last one, or -1; its characters; any escape.

    The bytes are valid UTF-8. A NUL and an unpaired surrogate are left to Python.
    """
    characters, escaped = 0, False
    while at < end:
        byte = data[at]
        if byte == 34:
            return at, characters, escaped
        if byte < 32:
            return _VOID, characters, escaped
        if byte == 92:
            escaped = True
            at += 1
            if at == end:
                return _VOID, characters, escaped
            byte = data[at]
            if byte == 117:
                code = _hex(data, at + 1, end)
                at += 4
                if 0xD800 <= code < 0xDC00:
                    if end - at < 7 or data[at + 1] != 92 or data[at + 2] != 117:
                        return _VOID, characters, escaped
                    low = _hex(data, at + 3, end)
                    if not 0xDC00 <= low < 0xE000:
                        return _VOID, characters, escaped
                    at += 6
                elif code <= 0 or 0xDC00 <= code < 0xE000:
                    return _VOID, characters, escaped
            elif not (
                byte == 34 or byte == 92 or byte == 47 or byte == 98 or byte == 102 or byte == 110 or byte == 114
                or byte == 116
            ):  # fmt: skip
                return _VOID, characters, escaped
            characters += 1
        elif byte & 0xC0 != 0x80:
            characters += 1
        at += 1
    return _VOID, characters, escaped


@kernel
def _digits(data: Bytes, at: int, end: int) -> int:  # pragma: no cover - compiled
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at


@kernel
def _number_end(data: Bytes, at: int, end: int) -> int:  # pragma: no cover - compiled
    """Where the number that begins here ends, -1 if there is none."""
    begin = at
    if data[at] == 45:
        at += 1
    stop = _digits(data, at, end)
    if stop == at or (data[at] == 48 and stop > at + 1):
        return _VOID
    at = stop
    if at < end and data[at] == 46:
        stop = _digits(data, at + 1, end)
        if stop == at + 1:
            return _VOID
        at = stop
    if at < end and (data[at] | 32) == 101:
        at += 1
        if at < end and (data[at] == 43 or data[at] == 45):
            at += 1
        stop = _digits(data, at, end)
        if stop == at:
            return _VOID
        at = stop
    return at if at - begin <= LONGEST_NUMBER else _VOID


@kernel
def _word_end(data: Bytes, at: int, end: int) -> tuple[int, int]:  # pragma: no cover - compiled
    """Where true, false or null ends, -1 if it is none of them; and the kind of value."""
    if end - at >= 4:
        if data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
            return at + 4, OTHER
        if data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
            return at + 4, NULL
        if (
            end - at >= 5 and data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115
            and data[at + 4] == 101
        ):  # fmt: skip
            return at + 5, OTHER
    return _VOID, OTHER


@kernel
def _column(data: Bytes, at: int, stop: int, names: Bytes, ends: Int64) -> int:  # pragma: no cover - compiled
    """The number of the name that a key is, -1 if it is none."""
    for number in range(len(ends) - 1):
        size = ends[number + 1] - ends[number]
        if size != stop - at:
            continue
        same = True
        for i in range(size):
            same &= data[at + i] == names[ends[number] + i]
        if same:
            return number
    return -1


@kernel
def _scan_line(
    data: Bytes, at: int, end: int, names: Bytes, ends: Int64, row: int, spans: Int64, kinds: Kinds, sizes: Int64
) -> bool:  # pragma: no cover - compiled
    """Find the values of one line; whether it is an object that this reads, with each name once."""
    missing = len(ends) - 1
    for number in range(missing):
        spans[row, number, 0] = -1
    at = _spaces(data, at, end)
    if at == end or data[at] != 123:
        return False
    at += 1
    while True:
        at = _spaces(data, at, end)
        if at == end or data[at] != 34:
            return False
        stop, _, escaped = _string_end(data, at + 1, end)
        if stop < 0 or escaped:
            return False
        number = _column(data, at + 1, stop, names, ends)
        at = _spaces(data, stop + 1, end)
        if at == end or data[at] != 58:
            return False
        at = _spaces(data, at + 1, end)
        if at == end:
            return False
        kind, size = OTHER, 0
        if data[at] == 34:
            stop, size, escaped = _string_end(data, at + 1, end)
            kind = ESCAPED if escaped else STRING
            stop += 1 if stop >= 0 else 0
        elif data[at] == 45 or 48 <= data[at] <= 57:
            stop = _number_end(data, at, end)
        else:
            stop, kind = _word_end(data, at, end)
        if stop < 0:
            return False
        if number >= 0:
            if spans[row, number, 0] >= 0:
                return False
            missing -= 1
            spans[row, number, 0], spans[row, number, 1] = at, stop
            kinds[row, number], sizes[number] = kind, size
        at = _spaces(data, stop, end)
        if at == end:
            return False
        if data[at] == 125:
            break
        if data[at] != 44:
            return False
        at += 1
    return _spaces(data, at + 1, end) == end and not missing


@kernel
def scan(
    data: Bytes,
    starts: Int64,
    n_texts: int,
    longest: int,
    names: Bytes,
    ends: Int64,
    limits: Int64,
    done: Int64,
    spans: Int64,
    kinds: Kinds,
    sizes: Int64,
) -> int:  # pragma: no cover - compiled
    """Find the values of some keys in lines of valid UTF-8, from the line ``done[LINES]`` on.

    Args:
        starts: (n + 1,) where each line begins, and the last ends.
        n_texts: the first of the names that must be a text or null.
        longest: characters of a text; a longer one is left to Python.
        names, ends: the names, one after the other.
        limits: (3,) of what ``done`` counts: it stops after the row that reaches one.
        done: (3,) lines, rows and characters of texts so far; brought up to date.
        spans: (rows, k, 2) where each value lies; written from the row ``done[ROWS]`` on.
        kinds: (rows, k) of each value.
        sizes: (k,) to work with.
    """
    while done[LINES] < len(starts) - 1:
        line, row = done[LINES], done[ROWS]
        if row >= limits[ROWS] or done[CHARACTERS] >= limits[CHARACTERS]:
            return FULL
        if not _scan_line(data, starts[line], starts[line + 1], names, ends, row, spans, kinds, sizes):
            return UNKNOWN
        for number in range(n_texts):
            if kinds[row, number] == OTHER or sizes[number] > longest:
                return UNKNOWN
        for number in range(n_texts):
            if kinds[row, number] != NULL:
                done[CHARACTERS] += sizes[number]
        done[LINES] += 1
        done[ROWS] += 1
    return ENDED


@kernel
def _put(out: Bytes, at: int, code: int) -> int:  # pragma: no cover - compiled
    """Write a character as UTF-8; where the next one goes."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at], out[at + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        out[at], out[at + 1], out[at + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
        return at + 3
    out[at], out[at + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F
    out[at + 2], out[at + 3] = 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
    return at + 4


@kernel
def read_strings(
    data: Bytes, spans: Int64, kinds: Kinds, out: Bytes, offsets: Int64
) -> None:  # pragma: no cover - compiled
    """Write the strings that stand at (n, 2) ``spans`` one after the other, without quotation marks and escapes.

    Args:
        out: room for as many bytes as the spans have.
        offsets: (n + 1,) where each begins; written.
    """
    to = 0
    for number in range(len(spans)):
        offsets[number] = to
        if kinds[number] == NULL:
            continue
        at, end = spans[number, 0] + 1, spans[number, 1] - 1
        if kinds[number] == STRING:
            for i in range(at, end):
                out[to + i - at] = data[i]
            to += end - at
            continue
        while at < end:
            byte = data[at]
            at += 1
            if byte != 92:
                out[to] = byte
                to += 1
                continue
            byte = data[at]
            at += 1
            if byte == 117:
                code = _hex(data, at, end)
                at += 4
                if 0xD800 <= code < 0xDC00:
                    code = 0x10000 + ((code - 0xD800) << 10 | (_hex(data, at + 2, end) - 0xDC00))
                    at += 6
                to = _put(out, to, code)
                continue
            if byte == 110:
                byte = np.uint8(10)
            elif byte == 116:
                byte = np.uint8(9)
            elif byte == 114:
                byte = np.uint8(13)
            elif byte == 98:
                byte = np.uint8(8)
            elif byte == 102:
                byte = np.uint8(12)
            out[to] = byte
            to += 1
    offsets[len(spans)] = to
