"""Forward-backward over chains of positions, each with candidates of its own (Rabiner 1989, section III.A)."""

from __future__ import annotations

import numba
import numpy as np

from lexveil.types import Floats, Ids


@numba.njit(cache=True, error_model="numpy")
def fill_transitions(
    previous: Ids,
    first: Ids,
    inner: Floats,
    alone: Floats,
    weight: float,
    single: Floats,
    starts: Ids,
    keys: Ids,
    seen: Floats,
    rest: Floats,
    out: Floats,
) -> None:  # pragma: no cover - compiled
    """How likely each of k candidates is after each of j symbols, into ``out`` (j, k).

    ``weight``·p₂(first | previous)·inner + (1 - ``weight``)·alone; after an unknown symbol, below 0, only ``alone``.
    """
    n_symbols = len(single)
    for i in range(len(previous)):
        symbol = previous[i]
        if symbol < 0:
            out[i, : len(first)] = alone
            continue
        lowest, highest = starts[symbol], starts[symbol + 1]
        for j in range(len(first)):
            wanted = symbol * n_symbols + first[j]
            low, high = lowest, highest
            while low < high:
                middle = (low + high) // 2
                if keys[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            p = rest[symbol] * single[first[j]]
            if low < highest and keys[low] == wanted:
                p += seen[low]
            out[i, j] = weight * p * inner[j] + (1.0 - weight) * alone[j]


@numba.njit(cache=True, error_model="numpy")
def marginals(
    chains: Ids,
    before: Ids,
    offsets: Ids,
    first: Ids,
    last: Ids,
    inner: Floats,
    alone: Floats,
    likelihood: Floats,
    weight: float,
    single: Floats,
    starts: Ids,
    keys: Ids,
    seen: Floats,
    rest: Floats,
) -> Floats:  # pragma: no cover - compiled
    """The posterior probability of every candidate of n positions, given all that is known of its chain.

    Args:
        chains: (c + 1,) where each chain of positions starts.
        before: (c,) the symbol before each chain; -1 where it is unknown.
        offsets: (n + 1,) where the candidates of each position start; each has at least one.
        first, last, inner, alone: (m,) of the candidates.
        likelihood: (m,) of what is seen at the position, up to a factor of the position; the largest is 1.

    Returns:
        (m,), adding up to 1 at each position.
    """
    n = len(offsets) - 1
    width = 1
    for t in range(n):
        width = max(width, offsets[t + 1] - offsets[t])
    longest = 1
    for c in range(len(chains) - 1):
        longest = max(longest, chains[c + 1] - chains[c])
    steps = np.empty((longest, width, width))
    posterior = np.empty(offsets[n])
    ahead, behind = np.empty(width), np.empty(width)
    symbol = np.empty(1, dtype=np.int64)
    for c in range(len(chains) - 1):
        for t in range(chains[c], chains[c + 1]):
            a, b = offsets[t], offsets[t + 1]
            step = steps[t - chains[c]]
            if t == chains[c]:
                symbol[0] = before[c]
                fill_transitions(
                    symbol, first[a:b], inner[a:b], alone[a:b], weight, single, starts, keys, seen, rest, step
                )
                for j in range(b - a):
                    posterior[a + j] = likelihood[a + j] * step[0, j]
            else:
                z = offsets[t - 1]
                fill_transitions(
                    last[z:a], first[a:b], inner[a:b], alone[a:b], weight, single, starts, keys, seen, rest, step
                )
                for j in range(b - a):
                    p = 0.0
                    for i in range(a - z):
                        p += posterior[z + i] * step[i, j]
                    posterior[a + j] = likelihood[a + j] * p
            total = 0.0
            for j in range(a, b):
                total += posterior[j]
            for j in range(a, b):
                posterior[j] /= total
        t = chains[c + 1] - 1
        if t < chains[c]:
            continue
        for j in range(offsets[t + 1] - offsets[t]):
            ahead[j] = 1.0
        for t in range(chains[c + 1] - 2, chains[c] - 1, -1):
            a, b, z = offsets[t], offsets[t + 1], offsets[t + 2]
            step = steps[t + 1 - chains[c]]
            largest = 0.0
            for i in range(b - a):
                p = 0.0
                for j in range(z - b):
                    p += step[i, j] * likelihood[b + j] * ahead[j]
                behind[i] = p
                largest = max(largest, p)
            total = 0.0
            for i in range(b - a):
                ahead[i] = behind[i] / largest
                posterior[a + i] *= ahead[i]
                total += posterior[a + i]
            for i in range(a, b):
                posterior[i] /= total
    return posterior
