"""Constants that TEM, in and out of context, and the compiled samplers share."""

from __future__ import annotations

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
