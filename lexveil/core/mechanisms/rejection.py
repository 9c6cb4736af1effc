"""Constants and the table of draws that the rejection samplers and their compiled parts share."""

from __future__ import annotations

from typing import NamedTuple

from lexveil.base.types import Floats, Ids, Words

MARGIN = 1e-9  # relative margin of a bound of the distance, far more than rounding
ROUNDING = 1e-13  # relative bound on the rounding error of a limit
# in place of a word: draw by a list; decide exactly
PENDING = -1
UNDECIDED = -2
# output of a token: its own draw, the draw of another token, the token itself, nothing
DRAWN = 0
FOLLOWS = 1
KEPT = 2
SKIPPED = 3


class Draws(NamedTuple):
    """Draws that are still to be made, one in each row.

    Attributes:
        inputs: (n,) number of the word, or of the query vector, that is replaced.
        epsilon, gamma: (n,).
        keys: (n, 4) keys of their streams.
        refused: (n,) number of proposals already refused.
        doubts: (n, 3) written for an undecided draw: the proposed row, the whole part of its
            position, the number of the proposal.
    """

    inputs: Ids
    epsilon: Floats
    gamma: Floats
    keys: Words
    refused: Ids
    doubts: Ids
