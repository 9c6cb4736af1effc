"""What a token looks like in a text, worked out once per distinct token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

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
    return token.replace("_", " ").replace("＿", "_")


class _Written(Bounded[str, str]):
    """``plain`` of a token, worked out once."""

    def make(self, token: str) -> str:
        return plain(token)


class _Places(Bounded[str, int]):
    """How a token stands beside its neighbours."""

    def make(self, token: str) -> int:
        return _PLACE.get(token, LOOSE)


_WRITTEN, _PLACES = _Written(), _Places()


@dataclass(frozen=True, slots=True)
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
