"""Numbers that TEM and its compiled samplers share."""

from __future__ import annotations

MARGIN = 1e-9  # of a bound of the distance, far more than rounding
ROUNDING = 1e-13  # of a limit, more than the few operations that it is computed by can lose
PENDING, UNDECIDED = -1, -2  # in place of a word: draw by a list; decide exactly
