"""The compiled scanner behind fast_tokenize.py: UTF-8 bytes to tokens, sentences and numbers, from left to right.

Why left to right is the same as the expressions:

* Every alternative of the token expression ends where a run of one class of characters ends, and what must follow it
  is never of that class; so giving characters back cannot help, and the longest run is the only candidate. The one
  exception, the last character of a URL, is searched from the end of the run. An e-mail address starts at a run of at
  most 64 characters that ``@`` follows; a longer run has no ``@`` within reach.
* No token holds white space and every sentence ends in white space or with the text, so tokens can be found without
  knowing sentences. A match of the boundary expression always ends where a run of white space ends, and there is at
  most one for each run; what stands before the run and what is in it decide whether the sentence ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from lexveil.types import Bytes, Int32, Int64

Classes = npt.NDArray[np.uint16]
Hashes = npt.NDArray[np.uint64]
F = TypeVar("F", bound=Callable[..., Any])

# The classes of characters that the expressions of tokenize.py are made of, one bit each.
WORD, ALPHA, DIGIT, LETTER, JOINER, LOCAL, DOMAIN, MARK = 1, 2, 4, 8, 16, 32, 64, 128
SPACE, BREAK, STOP, CLOSER, CAPITAL, NO_URL, AFTER_URL = 256, 512, 1024, 2048, 4096, 8192, 16384

# What the scanner keeps between two calls: the text and the byte it is at, tokens of the open sentence, and counts.
_TEXT, _AT, _SIZE, N_TOKENS, N_SENTENCES, N_SURFACES = range(6)


def kernel(function: F) -> F:
    """Compile a function that makes no array, without counting the uses of arrays.

    Numba counts every array in and out of use at every call, which would more than double the time of the scanner.
    Its own string routines are compiled like this.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False}  # its type hints leave the second out
    return cast(F, numba.njit(**options)(function))


@kernel
def scan(
    data: Bytes,
    offsets: Int64,
    classes: Classes,
    abbreviations: Hashes,
    state: Int64,
    ids: Int32,
    spans: Int32,
    sizes: Int32,
    per_text: Int32,
    slots: Int32,
    hashes: Hashes,
    places: Int32,
) -> bool:  # pragma: no cover - compiled
    """Find and number tokens until all texts are read, or until an array is full.

    Surfaces that differ only in the case of ASCII letters share a number: their normal forms are the same.

    Args:
        state: where to go on, and where it stopped: see ``_TEXT`` to ``N_SURFACES``; zeros to begin with.
        ids: (capacity,) number of each token's surface.
        spans: (capacity, 2) bytes of ``data`` where each token starts and ends, or (0, 2) if they are not wanted.
        sizes: (capacity,) tokens by sentence.
        per_text: (t,) sentences by text, zeros to begin with.
        slots: number of a surface by its hash, -1 if free; open addressing; a power of two, twice ``len(hashes)``.
        hashes, places: (capacity of surfaces,) hash, and (., 2) first place in ``data``.

    Returns:
        Whether all texts were read.
    """
    n, n_sentences, n_surfaces = state[N_TOKENS], state[N_SENTENCES], state[N_SURFACES]
    at, size = state[_AT], state[_SIZE]
    for text in range(state[_TEXT], len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        at_sign = begin - 1
        while at < end:
            code, width = _decode(data, at)
            if classes[code] & SPACE:
                gap = at
                broken = False
                while at < end:
                    code, width = _decode(data, at)
                    if not classes[code] & SPACE:
                        break
                    broken |= (classes[code] & BREAK) != 0
                    at += width
                if size and _ends_sentence(data, begin, gap, broken, classes, abbreviations):
                    sizes[n_sentences] = size
                    n_sentences += 1
                    per_text[text] += 1
                    size = 0
                continue
            if n == len(ids) or n_surfaces == len(hashes):
                state[_TEXT], state[_AT], state[_SIZE] = text, at, size
                state[N_TOKENS], state[N_SENTENCES], state[N_SURFACES] = n, n_sentences, n_surfaces
                return False

            if at_sign < at:
                at_sign = at
                while at_sign < end and data[at_sign] != 64:
                    at_sign += 1
            # 64 characters before an @ are at most 256 bytes.
            stop = _token_end(data, at, end, classes, at_sign < end and at_sign - at <= 256)
            value = _hash(data, at, stop)
            slot = find_slot(data, at, stop, value, slots, hashes, places)
            surface = slots[slot]
            if surface < 0:
                surface = n_surfaces
                n_surfaces += 1
                slots[slot] = surface
                hashes[surface] = value
                places[surface, 0], places[surface, 1] = at, stop
            ids[n] = surface
            if len(spans):
                spans[n, 0], spans[n, 1] = at, stop
            n += 1
            size += 1
            at = stop
        if size:
            sizes[n_sentences] = size
            n_sentences += 1
            per_text[text] += 1
            size = 0
    state[N_TOKENS], state[N_SENTENCES], state[N_SURFACES] = n, n_sentences, n_surfaces
    return True


@kernel
def _decode(data: Bytes, at: int) -> tuple[np.int64, int]:  # pragma: no cover - compiled
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
def _before(data: Bytes, at: int) -> int:  # pragma: no cover - compiled
    """First byte of the character that ends before ``at``."""
    at -= 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@kernel
def _run(data: Bytes, at: int, end: int, classes: Classes, wanted: int) -> int:  # pragma: no cover - compiled
    """Where the run of characters of the wanted class that starts at ``at`` ends; ``at`` if there is none."""
    while at < end:
        code, width = _decode(data, at)
        if not classes[code] & wanted:
            break
        at += width
    return at


@kernel
def _token_end(data: Bytes, at: int, end: int, classes: Classes, mail: bool) -> int:  # pragma: no cover - compiled
    """Where the token that starts at ``at`` ends: the alternatives of tokenize.py, in their order.

    Args:
        end: end of the text.
        mail: whether an ``@`` follows in the text.
    """
    code, width = _decode(data, at)
    first = classes[code]
    after = at + width
    if code == 104 or code == 119:  # h, w  # noqa: PLR1714 - a set would be made anew
        stop = _url_end(data, at, end, classes)
        if stop > at:
            return stop
    if mail and first & LOCAL:
        stop = _mail_end(data, at, end, classes)
        if stop > at:
            return stop
    if code == 64 or code == 35:  # @, #  # noqa: PLR1714
        if _run(data, after, end, classes, ALPHA) > after:
            return _run(data, after, end, classes, WORD)
        return after
    if first & LETTER:
        if first & DIGIT:
            stop = _number_end(data, at, end, classes)
            if stop > at:
                return stop
        if first & ALPHA and after < end and data[after] == 46:
            stop = _initials_end(data, at, end, classes)
            if stop > at:
                return stop
        while True:
            after = _run(data, after, end, classes, LETTER)
            if after == end:
                return after
            code, width = _decode(data, after)
            if not classes[code] & JOINER:
                return after
            stop = _run(data, after + width, end, classes, LETTER)
            if stop == after + width:
                return after
            after = stop
    if first & MARK:
        while after < end and data[after] == code:
            after += 1
    return after


@kernel
def _url_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the URL that starts at ``at``; ``at`` if there is none."""
    if end - at >= 4 and data[at] == 119 and data[at + 1] == 119 and data[at + 2] == 119 and data[at + 3] == 46:
        body = at + 4
    elif (
        end - at >= 7 and data[at] == 104 and data[at + 1] == 116 and data[at + 2] == 116 and data[at + 3] == 112
    ):  # http
        body = at + 5 if data[at + 4] == 115 else at + 4
        if end - body < 3 or data[body] != 58 or data[body + 1] != 47 or data[body + 2] != 47:
            return at
        body += 3
    else:
        return at
    stop = body
    while stop < end:
        code, width = _decode(data, stop)
        if classes[code] & NO_URL:
            break
        stop += width
    while stop > body:
        last = _before(data, stop)
        if not classes[_decode(data, last)[0]] & AFTER_URL:
            return stop
        stop = last
    return at


@kernel
def _mail_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the e-mail address that starts at ``at``; ``at`` if there is none."""
    stop = at
    for _ in range(64):
        if stop == end:
            return at
        code, width = _decode(data, stop)
        if not classes[code] & LOCAL:
            break
        stop += width
    if stop == end or data[stop] != 64:
        return at
    last = _run(data, stop + 1, end, classes, DOMAIN)
    if last == stop + 1:
        return at
    found = at
    while last < end and data[last] == 46:
        stop = _run(data, last + 1, end, classes, DOMAIN)
        if stop == last + 1:
            break
        last = found = stop
    return found


@kernel
def _number_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the digits with separators between them that start at ``at``; ``at`` if there is no separator."""
    found = at
    stop = _run(data, at, end, classes, DIGIT)
    while stop < end and (data[stop] == 46 or data[stop] == 44 or data[stop] == 58):  # . , :
        last = _run(data, stop + 1, end, classes, DIGIT)
        if last == stop + 1:
            break
        stop = found = last
    return found


@kernel
def _initials_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the letters with a full stop after each that start at ``at``; ``at`` if there are fewer than two."""
    count = 0
    stop = at
    while stop < end:
        code, width = _decode(data, stop)
        if not classes[code] & ALPHA or stop + width == end or data[stop + width] != 46:
            break
        stop += width + 1
        count += 1
    return stop if count > 1 else at


@kernel
def _ends_sentence(
    data: Bytes, begin: int, gap: int, broken: bool, classes: Classes, abbreviations: Hashes
) -> bool:  # pragma: no cover - compiled
    """Whether a sentence ends with the white space that starts at ``gap``.

    Args:
        begin: start of the text.
        broken: whether a line break is in the white space.
    """
    at = gap
    code = np.int64(0)
    while at > begin:
        at = _before(data, at)
        code, _ = _decode(data, at)
        if not classes[code] & CLOSER:
            break
    if not classes[code] & STOP:
        return broken
    if code != 46:
        return True
    # The full stop at ``at``: not after an initial or an abbreviation, whatever white space follows.
    packed = np.uint64(0)
    count = 0
    word = at
    while word > begin and count < 8:
        last = _before(data, word)
        code, _ = _decode(data, last)
        if not classes[code] & ALPHA:
            break
        word = last
        packed |= np.uint64(code | 32 if code < 128 else 255) << np.uint64(8 * count)
        count += 1
    if count == 0:
        return True
    if count == 1:
        code, _ = _decode(data, word)
        return not classes[code] & CAPITAL or code == 73
    for abbreviation in abbreviations:  # noqa: SIM110 - a generator cannot be compiled
        if abbreviation == packed:
            return False
    return True


@kernel
def lower(byte: np.uint8) -> np.uint8:  # pragma: no cover - compiled
    """ASCII letters in lower case, other bytes as they are."""
    return byte + np.uint8(32) if 65 <= byte <= 90 else byte


@kernel
def _hash(data: Bytes, at: int, stop: int) -> np.uint64:  # pragma: no cover - compiled
    """FNV-1a over the lower-cased bytes, its high bits folded into the low ones that choose a slot."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(at, stop):
        value = (value ^ np.uint64(lower(data[i]))) * np.uint64(0x100000001B3)
    return value ^ value >> np.uint64(32)


@kernel
def find_slot(
    data: Bytes, at: int, stop: int, value: np.uint64, slots: Int32, hashes: Hashes, places: Int32
) -> np.int64:  # pragma: no cover - compiled
    """The slot of a surface, or the free one where it belongs. Equal means byte for byte, not only by hash."""
    mask = len(slots) - 1
    slot = np.int64(value & np.uint64(mask))
    while True:
        surface = slots[slot]
        if surface < 0:
            return slot
        if hashes[surface] == value:
            start = np.int64(places[surface, 0])
            if places[surface, 1] - start == stop - at:
                i = 0
                while i < stop - at and lower(data[start + i]) == lower(data[at + i]):
                    i += 1
                if i == stop - at:
                    return slot
        slot = (slot + 1) & mask


@kernel
def refill(slots: Int32, hashes: Hashes) -> None:  # pragma: no cover - compiled
    """Put surfaces 0, 1, ... into a table of free slots."""
    mask = len(slots) - 1
    for surface in range(len(hashes)):
        slot = np.int64(hashes[surface] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = surface
