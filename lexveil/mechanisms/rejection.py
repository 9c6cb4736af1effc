"""Numbers that TEM, in and out of context, and the compiled samplers share."""

from __future__ import annotations

MARGIN = 1e-9  # of a bound of the distance, far more than rounding
ROUNDING = 1e-13  # of a limit, more than the few operations that it is computed by can lose
PENDING, UNDECIDED = -1, -2  # in place of a word: draw by a list; decide exactly
# what is written for a token: its own draw, that of another, it, nothing
DRAWN, FOLLOWS, KEPT, SKIPPED = 0, 1, 2, 3
