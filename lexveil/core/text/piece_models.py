"""Protocols of causal language models, which read texts as subword pieces and predict the next
piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lexveil.base.types import Flags, Floats, Ids


class BeamStates(Protocol):
    """Protocol of the state of a causal language model for b beams of each of t texts."""

    def read(self, pieces: Ids, is_read: Flags) -> None:
        """Feed the next subword piece into each beam for which ``is_read`` is true.

        Args:
            pieces: (t, b) the piece for each beam of each text.
            is_read: (t, b) whether the beam reads its piece.
        """

    def fork(self, text: int, parents: Ids) -> None:
        """Replace the beams of a text: each new beam continues the state of its parent beam."""

    def only(self, texts: Ids) -> None:
        """Keep the states of the given texts and drop all others."""

    def next_pieces(self, texts: Ids, among: Ids | None = None) -> Floats:
        """Return the probability of every piece to come next in each beam of some texts, (n, b,
        pieces).

        Args:
            among: (k,) the only candidate pieces, for probabilities of shape (n, b, k); None for
                all pieces.
        """


class PieceModel(Protocol):
    """Protocol of a causal language model that predicts the next subword piece."""

    @property
    def name(self) -> str:
        """Name of the model in parameters and reports."""

    def pieces(self, tokens: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the subword pieces of each token, at least one per token. Each token is given as
        the sequence of its words.
        """

    def begin(self, n_texts: int, n_beams: int) -> BeamStates:
        """Return the initial beam states for some texts, before their first words."""
