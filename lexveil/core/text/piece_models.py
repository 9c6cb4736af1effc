"""Protocols of a causal language model, which reads texts as subword pieces and predicts the next
piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lexveil.base.types import Flags, Floats, Ids


class BeamStates(Protocol):
    """State of a causal language model for b beams of each of t texts."""

    def read(self, pieces: Ids, is_read: Flags) -> None:
        """Read the next piece in each beam for which ``is_read`` is true.

        Args:
            pieces: (t, b) the piece for each beam of each text.
            is_read: (t, b) whether the beam reads its piece.
        """

    def fork(self, text: int, parents: Ids) -> None:
        """Continue each beam of a text from its parent beam."""

    def only(self, texts: Ids) -> None:
        """Keep the states of these texts and drop all others."""

    def next_pieces(self, texts: Ids, among: Ids | None = None) -> Floats:
        """Return the probability of every piece after each beam of some texts, (n, b, pieces).

        Args:
            among: (k,) the only candidate pieces, for probabilities of shape (n, b, k); None for
                all pieces.
        """


class PieceModel(Protocol):
    """Causal language model that predicts the next subword piece."""

    @property
    def name(self) -> str:
        """Name of the model in parameters and reports."""

    def pieces(self, tokens: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the pieces of each token, at least one per token. Each token is given as the
        sequence of its words.
        """

    def begin(self, n_texts: int, n_beams: int) -> BeamStates:
        """Return the initial beam states of some texts, before their first words."""
