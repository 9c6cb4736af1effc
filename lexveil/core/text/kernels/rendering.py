"""Compiled rendering of tokens as UTF-8, with the spacing of ordinary English."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Bytes, Ids
from lexveil.core.text.pieces import CLOSING, OPENING, QUOTE, TIGHT


@kernel()
def write(
    token: npt.NDArray[np.int32],
    bounds: Ids,
    place: npt.NDArray[np.int8],
    letters: Bytes,
    starts: Ids,
    out: Bytes,
    ends: Ids,
) -> None:  # pragma: no cover - compiled
    """Write the tokens of several texts as UTF-8 into ``out``, each text separately.

    Args:
        token: (n,) number of each output token among the pieces.
        bounds: (n_texts + 1,) the first token of each text.
        place: (P,) spacing rule of each piece, as in ``Pieces``.
        letters, starts: the written pieces, as in ``Pieces``.
        out: output buffer with room for all pieces and a space before each.
        ends: (n_texts + 1,) output: 0, then the end of each text in ``out``.
    """
    at = np.int64(0)
    for text in range(len(bounds) - 1):
        is_first = True
        is_tight = False
        is_open = False
        for number in range(bounds[text], bounds[text + 1]):
            piece = token[number]
            kind = place[piece]
            opens = kind == OPENING
            closes = kind == CLOSING
            if kind == QUOTE:  # quotation marks alternately open and close
                is_open = not is_open
                opens = is_open
                closes = not is_open
            if not (is_first or is_tight or closes or kind == TIGHT):
                out[at] = 32
                at += 1
            for letter in range(starts[piece], starts[piece + 1]):
                out[at] = letters[letter]
                at += 1
            is_first = False
            is_tight = opens or kind == TIGHT
        ends[text + 1] = at
