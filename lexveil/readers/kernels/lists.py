"""Compiled decoding of mechanisms that add noise to list positions: the function finds the most
probable source words of output words.
"""

from __future__ import annotations

import math

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Ids, Orders
from lexveil.readers.kernels.insert import insert

MARGIN = 1e-9  # margin of a bound, far larger than rounding errors


@kernel(nogil=True)
def decode(
    orders: Orders,
    places: Orders,
    log_prior: Floats,
    limit: float,
    outputs: Ids,
    rates: Floats,
    ids: Ids,
    scores: Floats,
) -> None:  # pragma: no cover - compiled
    """Find the k most probable source words of n output words, for noise on the positions of a word
    list; ``lists.ListsAdversary`` explains the method.

    Args:
        limit: ε·γ/2 of the truncated exponential mechanism, the same for all ε; infinite for
            geometric noise, which is clipped to the list.
        rates: (n,) loss per position, in nats: ε/2 for the truncated exponential mechanism, ε for
            geometric noise.
        ids, scores: (n, k) output, most probable first; the ids must be -1 at the call.
    """
    n_words = orders.shape[1]
    seen = np.full(n_words, -1, dtype=np.int64)
    terms = np.empty(len(orders))
    most_frequent = log_prior.max()
    is_geometric = limit == np.inf
    for token in range(len(outputs)):
        output = outputs[token]
        rate = rates[token]
        at_end = 0.0
        inside = 0.0
        if is_geometric:
            at_end = -math.log1p(math.exp(-rate))
            inside = at_end + math.log(-math.expm1(-rate))
            bound = most_frequent + at_end
        # the sum of the weights is largest around the middle of a list, and smallest at its ends
        else:
            bound = most_frequent - _log_total(0, n_words, rate, limit)
        for radius in range(n_words):
            if bound - min(rate * radius, limit) + MARGIN < scores[token, -1]:
                break
            for which in range(len(orders)):
                for side in range(2 if radius else 1):
                    place = places[which, output] + (radius if side else -radius)
                    if not 0 <= place < n_words or seen[orders[which, place]] == token:
                        continue
                    word = orders[which, place]
                    seen[word] = token
                    for each in range(len(orders)):
                        source = places[each, word]
                        target = places[each, output]
                        terms[each] = -min(rate * abs(source - target), limit)
                        if not is_geometric:
                            terms[each] -= _log_total(source, n_words, rate, limit)
                        elif n_words > 1:
                            terms[each] += at_end if target in (0, n_words - 1) else inside
                    insert(word, log_prior[word] + _log_mean(terms), ids[token], scores[token])


@kernel(nogil=True)
def _log_total(
    place: int, n_words: int, rate: float, limit: float
) -> float:  # pragma: no cover - compiled
    """Return ln Σ_j exp(-min(rate·|place-j|, limit)) over the positions j of a word list. The sum
    consists of two geometric series, and of all positions beyond them.
    """
    reach = min(limit / rate, float(n_words))
    left = min(place, int(reach))
    right = min(n_words - 1 - place, int(reach))
    ratio = math.exp(-rate) / -math.expm1(-rate)
    series = -(math.expm1(-rate * left) + math.expm1(-rate * right)) * ratio
    return math.log(1 + series + (n_words - 1 - left - right) * math.exp(-limit))


@kernel(nogil=True)
def _log_mean(terms: Floats) -> float:  # pragma: no cover - compiled
    """Return the logarithm of the mean of e^term."""
    largest = -np.inf
    total = 0.0
    for term in terms:
        largest = max(largest, term)
    for term in terms:
        total += math.exp(term - largest)
    return largest + math.log(total / len(terms))
