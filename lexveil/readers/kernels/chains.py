"""Compiled forward-backward algorithm over chains of words with candidates (Rabiner 1989, section
III.A).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Ids
from lexveil.core.language_models.kneser_ney import BigramModel


class ChainCandidates(NamedTuple):
    """The m candidates of the replaced words at all positions.

    Attributes:
        first, last: (m,) symbols of their first and last words.
        inner: (m,) probability of the words after the first.
        alone: (m,) probability of a candidate after an unknown symbol.
        likelihood: (m,) likelihood of the output at the position, scaled so that the largest of a
            position is 1.
    """

    first: Ids
    last: Ids
    inner: Floats
    alone: Floats
    likelihood: Floats


@kernel(error_model="numpy")
def fill_transitions(
    previous: Ids,
    candidates: ChainCandidates,
    start: int,
    end: int,
    weight: float,
    model: BigramModel,
    out: Floats,
) -> None:  # pragma: no cover - compiled
    """Write the transition probabilities of the candidates ``start`` to ``end`` - 1 after each of j
    symbols into ``out`` (j, k).

    The probability is ``weight``·p₂(first | previous)·inner + (1 - ``weight``)·alone. After an
    unknown symbol, which is below 0, it is ``alone``.
    """
    first = candidates.first[start:end]
    inner = candidates.inner[start:end]
    alone = candidates.alone[start:end]
    n_symbols = len(model.single)
    for i in range(len(previous)):
        symbol = previous[i]
        if symbol < 0:
            out[i, : len(first)] = alone
            continue
        lowest = model.starts[symbol]
        highest = model.starts[symbol + 1]
        for j in range(len(first)):
            wanted = symbol * n_symbols + first[j]
            low = lowest
            high = highest
            while low < high:
                middle = (low + high) // 2
                if model.keys[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            p = model.rest[symbol] * model.single[first[j]]
            if low < highest and model.keys[low] == wanted:
                p += model.seen[low]
            out[i, j] = weight * p * inner[j] + (1.0 - weight) * alone[j]


@kernel(error_model="numpy")
def marginals(
    chains: Ids,
    before: Ids,
    offsets: Ids,
    candidates: ChainCandidates,
    weight: float,
    model: BigramModel,
) -> tuple[Floats, Floats]:  # pragma: no cover - compiled
    """Return the posterior probability of every candidate of n positions, given the whole chain.

    Args:
        chains: (c + 1,) the first position of each chain.
        before: (c,) the symbol before each chain; -1 if it is unknown.
        offsets: (n + 1,) the first candidate of each position, which has at least one.

    Returns:
        (m,) posteriors, adding up to 1 at each position; and (m,) likelihood of the rest of the
        chain after each candidate, scaled so that the largest of a position is 1.
    """
    n = len(offsets) - 1
    likelihood = candidates.likelihood
    width = 1
    for t in range(n):
        width = max(width, offsets[t + 1] - offsets[t])
    longest = 1
    for c in range(len(chains) - 1):
        longest = max(longest, chains[c + 1] - chains[c])
    steps = np.empty((longest, width, width))
    posterior = np.empty(offsets[n])
    follows = np.ones(offsets[n])
    ahead = np.empty(width)
    behind = np.empty(width)
    for c in range(len(chains) - 1):
        for t in range(chains[c], chains[c + 1]):
            a = offsets[t]
            b = offsets[t + 1]
            step = steps[t - chains[c]]
            if t == chains[c]:
                fill_transitions(before[c : c + 1], candidates, a, b, weight, model, step)
                for j in range(b - a):
                    posterior[a + j] = likelihood[a + j] * step[0, j]
            else:
                z = offsets[t - 1]
                fill_transitions(candidates.last[z:a], candidates, a, b, weight, model, step)
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
            a = offsets[t]
            b = offsets[t + 1]
            z = offsets[t + 2]
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
                ahead[i] = follows[a + i] = behind[i] / largest
                posterior[a + i] *= ahead[i]
                total += posterior[a + i]
            for i in range(a, b):
                posterior[i] /= total
    return posterior, follows
