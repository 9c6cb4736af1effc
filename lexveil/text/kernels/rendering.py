"""Tokens to UTF-8, spaced as in ordinary English."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from lexveil.text.pieces import CLOSING, OPENING, QUOTE, TIGHT
from lexveil.types import Bytes, Flags, Ids


@numba.njit(cache=True)
def write(
    token: npt.NDArray[np.int32],
    bounds: Ids,
    place: npt.NDArray[np.int8],
    letters: Bytes,
    starts: Ids,
    out: Bytes,
    ends: Ids,
) -> None:  # pragma: no cover - compiled
    """Write the tokens of texts, each text on its own.

    Args:
        token: (n,) number of each output token among the pieces.
        bounds: (n_texts + 1,) where each text's tokens start.
        place: (P,) how each piece stands beside its neighbours.
        letters, starts: what each piece is, as in ``Pieces.letters``.
        out: room for all pieces and a space before each.
        ends: (n_texts + 1,) 0, and where each text ends in ``out``; written.
    """
    at = np.int64(0)
    for text in range(len(bounds) - 1):
        is_first, is_tight, is_open = True, False, False
        for number in range(bounds[text], bounds[text + 1]):
            piece = token[number]
            kind = place[piece]
            opens, closes = kind == OPENING, kind == CLOSING
            if kind == QUOTE:  # it opens and closes in turn
                is_open = not is_open
                opens, closes = is_open, not is_open
            if not (is_first or is_tight or closes or kind == TIGHT):
                out[at] = 32
                at += 1
            for letter in range(starts[piece], starts[piece + 1]):
                out[at] = letters[letter]
                at += 1
            is_first, is_tight = False, opens or kind == TIGHT
        ends[text + 1] = at


@numba.njit(cache=True)
def find_calm(data: Bytes, starts: Ids, gentle: Flags, calm: Flags) -> None:  # pragma: no cover - compiled
    """Whether texts have nothing but gentle characters, and no ``http`` or ``www.`` with a capital.

    Args:
        starts: (n + 1,) where each text begins in ``data``, which is valid UTF-8.
        gentle: by code point; beyond them none is.
        calm: (n,) written.
    """
    for text in range(len(starts) - 1):
        at, end, found = int(starts[text]), int(starts[text + 1]), True
        while at < end and found:
            byte = np.int64(data[at])
            if byte < 128:
                if (byte | 32 == 104 or byte | 32 == 119) and end - at >= 4:
                    bits, raw = np.int64(0), np.int64(0)
                    for i in range(4):
                        raw = raw << 8 | np.int64(data[at + i])
                        bits = bits << 8 | np.int64(data[at + i] | 32)
                    found = raw == bits or not (bits == 0x68747470 or bits == 0x7777772E)  # noqa: PLR1714
                at += 1
            elif byte < 0xE0:
                found = bool(gentle[(byte & 31) << 6 | np.int64(data[at + 1]) & 63])
                at += 2
            elif byte < 0xF0:
                code = (byte & 15) << 12 | (np.int64(data[at + 1]) & 63) << 6 | np.int64(data[at + 2]) & 63
                found = bool(code < len(gentle) and gentle[code])
                at += 3
            else:
                found = False
        calm[text] = found
