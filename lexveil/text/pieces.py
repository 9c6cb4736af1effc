"""What a token looks like in a text, worked out once per distinct token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lexveil.text.languages import ELIDED
from lexveil.types import Bytes

K = TypeVar("K")
T = TypeVar("T")


class Bounded(dict[K, T]):
    """What ``make`` makes of each key, worked out once for as long as there are not too many."""

    def make(self, key: K) -> T:
        """What belongs to a key."""
        raise NotImplementedError

    def __missing__(self, key: K) -> T:
        if len(self) >= 1_000_000:
            self.clear()
        value = self[key] = self.make(key)
        return value


# How a mark stands beside its neighbours: 0 a space on both sides, 1 none before, 2 none after, 3 none on either
# side, 4 a quotation mark (opens and closes in turn).
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


class _Written(Bounded[str, str]):
    """``plain`` of a token, worked out once."""

    def make(self, token: str) -> str:
        return plain(token)


class _Places(Bounded[str, int]):
    """How a token stands beside its neighbours."""

    def make(self, token: str) -> int:
        if token[-1:] == "'" and token.rpartition("_")[2] in ELIDED:
            return OPENING
        return _PLACE.get(token, LOOSE)


_WRITTEN, _PLACES = _Written(), _Places()


@dataclass(frozen=True)
class Pieces:
    """What n tokens look like in a text.

    Attributes:
        written: (n,) object array of strings.
        place: (n,) int8, how each stands beside its neighbours.
    """

    written: npt.NDArray[np.object_]
    place: npt.NDArray[np.int8]

    @classmethod
    def of(cls, tokens: Sequence[str]) -> Pieces:
        """Write tokens."""
        written = np.empty(len(tokens), dtype=object)
        written[:] = list(map(_WRITTEN.__getitem__, tokens))
        return cls(written, np.fromiter(map(_PLACES.__getitem__, tokens), dtype=np.int8, count=len(tokens)))

    @classmethod
    def joined(cls, first: Pieces, second: Pieces) -> Pieces:
        """Some tokens and then others, without writing them again."""
        both = cls(np.concatenate([first.written, second.written]), np.concatenate([first.place, second.place]))
        (one, starts), (other, ends) = first.letters, second.letters
        vars(both)["letters"] = np.concatenate([one, other]), np.concatenate([starts, starts[-1] + ends[1:]])
        return both

    @cached_property
    def letters(self) -> tuple[Bytes, npt.NDArray[np.int64]]:
        """What is written as UTF-8, one after the other, and the (n + 1,) bytes where each starts."""
        encoded = [written.encode() for written in self.written.tolist()]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return np.frombuffer(b"".join(encoded), np.uint8), ends
