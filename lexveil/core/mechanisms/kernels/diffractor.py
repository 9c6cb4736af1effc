"""Compiled samplers of the 1-Diffractor mechanisms in float64. They flag the tokens whose result
rounding could change.
"""

from __future__ import annotations

import math

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Flags, Floats, Ids, Words

Moved = tuple[Ids, Flags]  # new indexes, and flags of those that rounding could have changed

ROUNDING = (
    2.0**-49
)  # eight units in the last place, more than the rounding error of the few operations below
SMALLEST = 1 << 20  # exact arithmetic decides for uniform numbers of fewer than 21 bits


@kernel(error_model="numpy")
def geometric(
    index: Ids, epsilon: Floats, words: Words, limit: int
) -> Moved:  # pragma: no cover - compiled
    """Add two-sided geometric noise to each index in float64, and flag the tokens whose result
    rounding could change.
    """
    moved = np.empty_like(index)
    doubt = np.zeros(len(index), dtype=np.bool_)
    last = -1.0
    start = 0.0
    for token in range(len(index)):
        e = epsilon[token]
        if e != last:  # tokens of one text share their epsilon
            last = e
            start = math.log(2.0) - math.log1p(math.exp(-e))
        upper = words[token, 0] >> np.uint64(1)
        uniform = (np.float64(upper) + 0.5) * 2.0**-63
        log_u = math.log(uniform)
        level = (start - log_u) / e
        error = (ROUNDING * (1.0 - log_u) + 2.0**-62 / uniform) / e + ROUNDING * level
        size = limit  # beyond this size, clipping gives the same index for all sizes
        if level < limit:
            size = int(level)
        if upper < np.uint64(SMALLEST):
            doubt[token] = True
        elif level - error <= limit:
            part = level - math.floor(level)
            # Size 0 has no lower boundary.
            doubt[token] = (part <= error and level >= 0.5) or 1.0 - part <= error
        moved[token] = (
            index[token] - size if words[token, 0] & np.uint64(1) else index[token] + size
        )
    return moved, doubt


@kernel(error_model="numpy")
def truncated_exponential(
    index: Ids, epsilon: Floats, gamma: Floats, far: float, size: int, words: Words
) -> Moved:  # pragma: no cover - compiled
    """Draw the new index of each token by the truncated exponential mechanism in float64, and flag
    the tokens whose result rounding could change.

    The weights come in this order: the index itself, 1; the indexes to its right, q + q² + … +
    q^right with q = e^{-ε/2}; the indexes to its left, likewise; then ``far`` for each index beyond
    the radius, from the lowest.
    """
    moved = np.empty_like(index)
    doubt = np.zeros(len(index), dtype=np.bool_)
    last = -1.0
    half = 0.0
    ratio = 0.0
    full = 0.0
    radius = 0
    for token in range(len(index)):
        if epsilon[token] != last:  # tokens of one text share their epsilon
            last = epsilon[token]
            half = last / 2
            radius = int(min(gamma[token], np.float64(size)))
            ratio = math.exp(-half) / -math.expm1(-half)
            full = -math.expm1(-half * radius) * ratio
        at = index[token]
        left = min(at, radius)
        right = min(size - 1 - at, radius)
        on_right = full if right == radius else -math.expm1(-half * right) * ratio
        on_left = full if left == radius else -math.expm1(-half * left) * ratio
        inside = 1.0 + on_right + on_left
        total = inside + (size - 1 - left - right) * far
        error = 2 * ROUNDING * total
        place = (np.float64(words[token, 0]) + 0.5) * 2.0**-64 * total
        if place < 1.0:
            moved[token] = at
            doubt[token] = place >= 1.0 - error
            continue
        edge = (
            abs(place - 1.0) <= error
            or abs(place - 1.0 - on_right) <= error
            or abs(place - inside) <= error
        )
        if place < inside:
            sign = 1 if place < 1.0 + on_right else -1
            side = place - 1.0 if sign == 1 else place - 1.0 - on_right
            rest = max(1.0 - side / ratio, 2.0**-60)
            level = -math.log1p(rest - 1.0) / half if side / ratio < 0.5 else -math.log(rest) / half
            spread = error / (ratio * half * rest) + ROUNDING * (level + 1 / half)
            if 4 * error > ratio * rest:  # the logarithm is far from linear in this interval
                spread = 1.0
            step = int(min(level, np.float64(size)))
            moved[token] = at + sign * (1 + step)
        else:
            level = (place - inside) / far
            spread = error / far + ROUNDING * level
            step = int(min(level, np.float64(size)))
            moved[token] = step if step < at - left else step + left + right + 1
        part = level - math.floor(level)
        doubt[token] = edge or part <= spread or 1.0 - part <= spread
    return moved, doubt
