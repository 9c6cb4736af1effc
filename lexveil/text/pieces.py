"""What a token looks like in a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.text.languages import ELIDED
from lexveil.types import Bytes, Int64

# How a mark stands beside its neighbours: 0 a space on both sides, 1 none before, 2 none after, 3
# none on either side, 4 a quotation mark (opens and closes in turn).
LOOSE, CLOSING, OPENING, TIGHT, QUOTE = range(5)
_PLACE = (
    dict.fromkeys([",", ".", ";", ":", "!", "?", ")", "]", "}", "%", "...", "'", "»", "°"], CLOSING)
    | dict.fromkeys(["(", "[", "{", "$", "#", "£", "€", "¿", "¡", "«"], OPENING)
    | dict.fromkeys(["/", "@", "\\", "_", "＿"], TIGHT)
    | {'"': QUOTE}
)


def plain(token: str) -> str:
    """A token as it is written: a collocation's words apart, an escaped ``_`` restored."""
    if "'_" in token:  # qu'_il; what is elided takes no space after it, and po'_di one
        words = token.split("_")
        token = "".join(word if word in ELIDED else f"{word}_" for word in words[:-1]) + words[-1]
    return token.replace("_", " ").replace("＿", "_")


def escaped(text: str) -> str:
    """A text as a token, so that ``plain`` gives it back."""
    return text.replace("_", "＿")


def _place_of(token: str) -> int:
    """How a token stands beside its neighbours."""
    if token[-1:] == "'" and token.rpartition("_")[2] in ELIDED:
        return OPENING
    return _PLACE.get(token, LOOSE)


@dataclass(frozen=True)
class Pieces:
    """What n tokens look like in a text.

    Attributes:
        letters: all of them as UTF-8, one after the other.
        starts: (n + 1,) the bytes where each starts.
        place: (n,) int8, how each stands beside its neighbours.
    """

    letters: Bytes
    starts: Int64
    place: npt.NDArray[np.int8]

    @classmethod
    def of(cls, tokens: Sequence[str]) -> Pieces:
        """Write tokens."""
        written = [plain(token).encode() for token in tokens]
        starts = np.cumsum([0, *map(len, written)], dtype=np.int64)
        place = np.fromiter(map(_place_of, tokens), dtype=np.int8, count=len(tokens))
        return cls(np.frombuffer(b"".join(written), np.uint8), starts, place)

    @classmethod
    def joined(cls, first: Pieces, second: Pieces) -> Pieces:
        """Some tokens and then others, without writing them again."""
        starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
        letters = np.concatenate([first.letters, second.letters])
        return cls(letters, starts, np.concatenate([first.place, second.place]))
