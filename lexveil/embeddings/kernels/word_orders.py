"""The walk of a greedy order through a graph of nearest words."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from lexveil.types import Orders


@numba.njit(cache=True)
def walk(
    ids: Orders,
    proven: Orders,
    active: Orders,
    used: npt.NDArray[np.bool_],
    current: int,
    order: Orders,
    filled: int,
    target: int,
) -> tuple[int, int]:
    """Follow the graph until ``target`` words are placed or all proven neighbours of a word are used."""
    while filled < target:
        found = -1
        for at in range(proven[current]):
            candidate = ids[current, at]
            if candidate >= 0 and not used[candidate]:
                found = candidate
                break
        if found < 0:
            break
        current = found
        used[current] = True
        order[filled] = active[current]
        filled += 1
    return current, filled
