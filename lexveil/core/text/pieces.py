"""Written form of tokens: their letters and the spacing around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Bytes, Int64
from lexveil.core.text.languages import ELIDED

# Spacing rule of a mark: 0 a space on both sides, 1 no space before, 2 no space after, 3 no space
# on either side, 4 a quotation mark (alternately opens and closes).
LOOSE, CLOSING, OPENING, TIGHT, QUOTE = range(5)
_PLACE = (
    dict.fromkeys([",", ".", ";", ":", "!", "?", ")", "]", "}", "%", "...", "'", "»", "°"], CLOSING)
    | dict.fromkeys(["(", "[", "{", "$", "#", "£", "€", "¿", "¡", "«"], OPENING)
    | dict.fromkeys(["/", "@", "\\", "_", "＿"], TIGHT)
    | {'"': QUOTE}
)


def plain(token: str) -> str:
    """Return the written form of a token: the words of a collocation are separated by spaces, and
    escaped ``_`` are restored.
    """
    if "'_" in token:  # no space after an elided word (qu'_il), but a space after po'_di
        words = token.split("_")
        token = "".join(word if word in ELIDED else f"{word}_" for word in words[:-1]) + words[-1]
    return token.replace("_", " ").replace("＿", "_")


def escaped(text: str) -> str:
    """Convert any text to a token from which ``plain`` restores the text."""
    return text.replace("_", "＿")


def _place_of(token: str) -> int:
    """Return the spacing rule of a token, which says where a space separates it from its
    neighbours.
    """
    if token[-1:] == "'" and token.rpartition("_")[2] in ELIDED:
        return OPENING
    return _PLACE.get(token, LOOSE)


@dataclass(frozen=True)
class Pieces:
    """Written form of n tokens: their letters and spacing rules.

    Attributes:
        letters: UTF-8 of all tokens, one after the other.
        starts: (n + 1,) the first byte of each token.
        place: (n,) int8, the spacing rule of each token.
    """

    letters: Bytes
    starts: Int64
    place: npt.NDArray[np.int8]

    @classmethod
    def of(cls, tokens: Sequence[str]) -> Pieces:
        """Build the written form of tokens."""
        written = [plain(token).encode() for token in tokens]
        starts = np.cumsum([0, *map(len, written)], dtype=np.int64)
        place = np.fromiter(map(_place_of, tokens), dtype=np.int8, count=len(tokens))
        return cls(np.frombuffer(b"".join(written), np.uint8), starts, place)

    @classmethod
    def joined(cls, first: Pieces, second: Pieces) -> Pieces:
        """Concatenate the written forms of two sequences of tokens."""
        starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
        letters = np.concatenate([first.letters, second.letters])
        return cls(letters, starts, np.concatenate([first.place, second.place]))
