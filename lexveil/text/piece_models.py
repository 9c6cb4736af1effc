"""What a causal language model is: it reads texts piece by piece, and says which piece of a word
comes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lexveil.types import Flags, Floats, Ids


class BeamStates(Protocol):
    """What b beams of each of t texts have read."""

    def read(self, pieces: Ids, is_read: Flags) -> None:
        """Read a piece in each beam where there is one, (t, b)."""

    def fork(self, text: int, parents: Ids) -> None:
        """Let each beam of a text go on from another one."""

    def only(self, texts: Ids) -> None:
        """Go on with some of the texts."""

    def next_pieces(self, texts: Ids, among: Ids | None = None) -> Floats:
        """The probability of every piece after each beam of some texts, (n, b, pieces).

        Args:
            among: (k,) pieces, one of which it is, (n, b, k); None: all.
        """


class PieceModel(Protocol):
    """Says which piece of a word comes next."""

    @property
    def name(self) -> str:
        """Its name in parameters and reports."""

    def pieces(self, tokens: Sequence[Sequence[str]]) -> list[list[int]]:
        """The pieces of the words of each of some tokens, one at least."""

    def begin(self, n_texts: int, n_beams: int) -> BeamStates:
        """Beams of some texts, before their first words."""
