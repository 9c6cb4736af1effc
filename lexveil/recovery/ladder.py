"""What is known at the rungs of a ladder of epsilons, and between them by interpolation in ln ε."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lexveil.errors import ParameterError
from lexveil.types import Floats, Rows

BETWEEN = 1e-12  # relative: epsilons nearer than so to a rung are that rung's


class Ladder:
    """Rungs from the smallest to the largest epsilon, a fixed ratio apart at most.

    Attributes:
        rungs: (L,) ascending.
        width: rungs that an interpolation takes.
    """

    def __init__(
        self, epsilon_range: tuple[float, float], ratio: float, at: Sequence[float] = (), width: int = 4
    ) -> None:
        low, high = epsilon_range
        if not 0 < low <= high < math.inf:
            raise ParameterError(f"epsilons of an adversary run from {low:g} to {high:g}; give 0 < lowest <= highest")
        steps = math.ceil(math.log(high / low) / math.log(ratio) - BETWEEN)
        rungs = np.geomspace(low, high, steps + 1) if steps else np.array([low])
        exact = np.array([epsilon for epsilon in at if low <= epsilon <= high])
        # What is asked for exactly takes the place of the rungs that it all but is.
        if len(exact):
            rungs = rungs[np.abs(rungs[:, None] / exact - 1).min(axis=1) > BETWEEN]
        self.rungs: Floats = np.unique(np.concatenate([rungs, exact]))
        self.width = min(width, len(self.rungs))

    def weights(self, epsilon: Floats) -> tuple[Rows, Floats]:
        """From which rung on, (n,), and with which weights, (n, width), values are interpolated; at a rung exactly.

        Lagrange's polynomial in ln ε through the nearest rungs on either side.

        Raises:
            ParameterError: if an epsilon lies outside of the ladder.
        """
        low, high = self.rungs[0] * (1 - BETWEEN), self.rungs[-1] * (1 + BETWEEN)
        if not ((epsilon >= low) & (epsilon <= high)).all():
            raise ParameterError(
                f"the adversary is built for an epsilon from {low:.6g} to {high:.6g} per token, and is asked about "
                f"{epsilon.min():.6g} to {epsilon.max():.6g}; build it for these"
            )
        nodes, at = np.log(self.rungs), np.log(epsilon)
        below = np.searchsorted(nodes, at, side="right") - 1
        first = np.clip(below - (self.width // 2 - 1 if self.width > 1 else 0), 0, len(nodes) - self.width)
        weights = np.ones((len(epsilon), self.width))
        for i in range(self.width):
            for j in range(self.width):
                if i != j:
                    weights[:, i] *= (at - nodes[first + j]) / (nodes[first + i] - nodes[first + j])
        nearest = np.abs(nodes[first[:, None] + np.arange(self.width)] - at[:, None])
        on = nearest.min(axis=1, initial=np.inf) <= BETWEEN
        weights[on] = nearest[on] == nearest[on].min(axis=1, keepdims=True)
        return first.astype(np.int64), weights
