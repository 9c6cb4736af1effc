"""Constants and the table of pending draws, shared by the rejection samplers and their compiled
kernels.
"""

from __future__ import annotations

from typing import NamedTuple

from lexveil.base.types import Floats, Ids, Words

MARGIN = 1e-9  # relative margin of bounds on the distance, far larger than rounding errors
ROUNDING = 1e-13  # relative bound on the rounding error of a limit
# results in place of a word: the draw needs a list; the draw must be decided exactly
PENDING = -1
UNDECIDED = -2
# Output of a token: its own draw; the draw of another token; the token itself; no output.
DRAWN = 0
FOLLOWS = 1
KEPT = 2
SKIPPED = 3


class Draws(NamedTuple):
    """Draws that are still to be made by rejection sampling, one per row.

    Attributes:
        inputs: (n,) number of the word, or of the query vector, that is replaced.
        epsilon, gamma: (n,).
        keys: (n, 4) keys of the streams of the draws.
        refused: (n,) number of proposals already refused.
        doubts: (n, 3) output for an undecided draw: the proposed row, the whole part of its
            position, the number of the proposal.
    """

    inputs: Ids
    epsilon: Floats
    gamma: Floats
    keys: Words
    refused: Ids
    doubts: Ids
