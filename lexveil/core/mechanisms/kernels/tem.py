"""Exact rejection samplers of TEM, the Truncated Exponential Mechanism. They draw integers, and
leave every decision that rounding could change to exact arithmetic.

The weight of word u is μ(u)·exp(-half·s), where half = ε/2, s = min(d, γ), and d is the distance in
float64. S is a power of 2 that scales weights to whole numbers. Every group of words has an
envelope, a whole number W with W >= S·exp(-half·s) for all of its words. A uniform real point on
the length Σ size·W gives a group, a word of the group and a position q in [0, W). The word is
accepted if q < S·exp(-half·s) and, for μ(u) = 2^-h, if h further bits are all 0. So each word is
drawn with exactly its weight, whatever the envelopes are. The whole part of the point is drawn
first; if rounding could change the acceptance, the token is returned as undecided.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Ids, Steps, Vectors, Words
from lexveil.core.embeddings.kernels.search import squared_distance
from lexveil.core.embeddings.kernels.sketch import prefetch, sketch_bounds
from lexveil.core.mechanisms.kernels.keystream import WORDS, State, next_words, open_stream
from lexveil.core.mechanisms.rejection import MARGIN, PENDING, ROUNDING, UNDECIDED, Draws

Members = npt.NDArray[np.int32]
Halvings = npt.NDArray[np.uint8]
Pair = tuple[int, int]
Interval = tuple[float, float]

REFUSE = 0
ACCEPT = 1
UNSURE = 2
AHEAD = 2  # number of tokens in advance for which lists are prefetched into the processor's cache


class WordTable(NamedTuple):
    """Words of a mechanism: (V, p) vectors, -log2 μ of each word for a base measure μ, and a
    sketch of each word, which is its vector in whole steps.
    """

    vectors: Vectors
    halvings: Halvings
    sketches: Steps
    step: float


@kernel(error_model="numpy")
def draw_uniformly(
    space: WordTable, tokens: Draws, attempts: int, bits: int
) -> Ids:  # pragma: no cover - compiled
    """Draw words by rejection sampling with uniform proposals.

    Args:
        attempts: greatest number of proposals per token.
        bits: log2 of S.

    Returns:
        (n,) words; PENDING if a token has used up its attempts; UNDECIDED if exact arithmetic must
        decide.
    """
    vectors, halvings, sketches, step = space
    ids, epsilon, gamma, keys, refused, doubts = tokens
    scale = np.int64(1) << bits
    total = np.int64(len(vectors)) << bits
    mask = least_mask(total)
    state = np.empty(16, dtype=np.uint32)
    stream = np.empty(WORDS, dtype=np.uint64)
    out = np.full(len(ids), PENDING)
    for token in range(len(ids)):
        word = ids[token]
        half = epsilon[token] / 2
        radius = gamma[token]
        open_stream(state, keys, token, 0)
        at = WORDS
        before = np.int64(-1)
        q_before = np.int64(0)
        for attempt in range(attempts):
            point, at = next_point(state, stream, at, total, mask)
            proposed = point >> bits
            q = point & (scale - 1)
            is_thinned, at = _is_thinned(state, stream, at, halvings[proposed])
            # Decide on the previous proposal while the memory of the current one is being fetched.
            prefetch(sketches, proposed)  # type: ignore[call-arg]
            if before >= 0 and attempt > refused[token]:
                bounds = sketch_bounds(sketches, step, word, before)
                decision = decide(vectors, (word, before), half, radius, q_before, bits, bounds)
                if decision != REFUSE:
                    out[token] = before if decision == ACCEPT else UNDECIDED
                    doubts[token, 0] = before
                    doubts[token, 1] = q_before
                    doubts[token, 2] = attempt - 1
                    break
            before = -1 if is_thinned else proposed
            q_before = q
    return out


@kernel(error_model="numpy")
def draw_from_lists(
    space: WordTable,
    tokens: Draws,
    near_ids: Members,
    near_distances: Floats,
    shells: Ids,
    places: Ids,
    bits: int,
) -> Ids:  # pragma: no cover - compiled
    """Draw words by rejection sampling, with proposals from shells of the nearest words and from
    all other words. The result has the form of the result of ``draw_uniformly``, but is never
    PENDING.

    Args:
        near_ids, near_distances: (m, K) lists of near words.
        shells: the first position of each shell in a list, and K.
        places: (n,) the row of each token's list.
    """
    vectors, halvings, sketches, step = space
    ids, epsilon, gamma, keys, refused, doubts = tokens
    n_words = len(vectors)
    n_shells = len(shells) - 1
    n_near = near_ids.shape[1]
    scale = np.int64(1) << bits
    state = np.empty(16, dtype=np.uint32)
    stream = np.empty(WORDS, dtype=np.uint64)
    envelope = np.empty(n_shells + 1, dtype=np.int64)
    size = np.empty(n_shells + 1, dtype=np.int64)
    size[:n_shells] = shells[1:] - shells[:-1]
    # The last group proposes all words; near words proposed there are refused.
    size[n_shells] = n_words if n_words > n_near else 0
    out = np.full(len(ids), PENDING)
    for token in range(len(ids)):
        word = ids[token]
        half = epsilon[token] / 2
        radius = gamma[token]
        place = places[token]
        if token + AHEAD < len(ids):
            prefetch(near_distances, places[token + AHEAD])  # type: ignore[call-arg]
        open_stream(state, keys, token, 1)
        at = WORDS
        total = np.int64(0)
        for shell in range(n_shells + 1):
            # The smallest distance of the shell; for unlisted words, the largest listed distance.
            # It is reduced by a margin, because another order of additions may give a slightly
            # smaller distance.
            bound = near_distances[place, min(shells[shell], n_near - 1)] * (1 - ROUNDING)
            weight = math.exp(-half * min(bound, radius))
            envelope[shell] = min(scale, np.int64(weight * (1 + MARGIN) * scale) + 1)
            total += size[shell] * envelope[shell]
        mask = least_mask(total)
        attempt = -1
        while out[token] == PENDING:
            attempt += 1
            point, at = next_point(state, stream, at, total, mask)
            shell = 0
            while point >= size[shell] * envelope[shell]:
                point -= size[shell] * envelope[shell]
                shell += 1
            proposed = point // envelope[shell]
            q = point - proposed * envelope[shell]
            there = shells[shell] + proposed if shell < n_shells else -1
            if there >= 0:
                proposed = np.int64(near_ids[place, there])
            is_thinned, at = _is_thinned(state, stream, at, halvings[proposed])
            if is_thinned or attempt < refused[token]:
                continue
            if there >= 0:
                bounds = near_distances[place, there], near_distances[place, there]
            else:
                bounds = sketch_bounds(sketches, step, word, proposed)
            decision = decide(vectors, (word, proposed), half, radius, q, bits, bounds)
            if decision != REFUSE and (shell < n_shells or not among(near_ids, place, proposed)):
                out[token] = proposed if decision == ACCEPT else UNDECIDED
                doubts[token, 0] = proposed
                doubts[token, 1] = q
                doubts[token, 2] = attempt
    return out


@numba.njit(inline="always")
def next_point(
    state: State, stream: Words, at: int, total: np.int64, mask: np.uint64
) -> tuple[np.int64, int]:  # pragma: no cover - compiled
    """Return the next uniform whole number below ``total`` from a random stream, and the next
    position in ``stream``.
    """
    point = total
    while point >= total:
        if at == WORDS:
            next_words(state, stream)
            at = 0
        point = np.int64(stream[at] & mask)
        at += 1
    return point, at


@numba.njit(inline="always")
def _is_thinned(
    state: State, stream: Words, at: int, halvings: int
) -> tuple[bool, int]:  # pragma: no cover - compiled
    """Return whether the base measure 2^-halvings rejects a proposal, and the next position in
    ``stream``.
    """
    if halvings == 0:
        return False, at
    if at == WORDS:
        next_words(state, stream)
        at = 0
    return (stream[at] & ((np.uint64(1) << np.uint64(halvings)) - np.uint64(1))) != 0, at + 1


@kernel()
def least_mask(total: np.int64) -> np.uint64:  # pragma: no cover - compiled
    """Return the least number 2^k - 1 that is at least ``total`` - 1. It serves as a bit mask: a
    masked random number is uniform below ``total`` once it is below ``total``.
    """
    mask = np.uint64(total - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    return mask


@kernel(error_model="numpy")
def decide(
    vectors: Vectors, pair: Pair, half: float, radius: float, q: int, bits: int, bounds: Interval
) -> int:  # pragma: no cover - compiled
    """Decide whether a proposed word at a real position in [q, q + 1) is accepted. It is accepted
    if the position is below S·exp(-half·min(d, radius)). Return UNSURE if rounding could change the
    decision.

    The condition is min(d, radius) < -ln(position / S) / half, where d is the distance between the
    pair of words. In most cases the ``bounds`` of d decide, and no vector is fetched. The bounds
    have a margin, so that they decide as d would.
    """
    scale = np.int64(1) << bits
    near, far = bounds
    if q > 0:
        limit = -math.log(q / scale) / half
        # The position may be as much as q + 1, and ln(1 + 1/q) <= 1/q.
        least = limit * (1 - ROUNDING) - (1 + ROUNDING) / (half * q)
        most = limit * (1 + ROUNDING)
    else:
        least = math.log(scale) / half * (1 - ROUNDING)
        most = np.inf
    if min(far, radius) * (1 + MARGIN) < least:
        return ACCEPT
    if min(near, radius) * (1 - MARGIN) > most:
        return REFUSE
    distance = score(vectors, pair[0], pair[1], radius)
    if distance < least:
        return ACCEPT
    return REFUSE if distance > most else UNSURE


@kernel()
def score(
    vectors: Vectors, word: int, proposed: int, radius: float
) -> float:  # pragma: no cover - compiled
    """Return min(d, radius) for the distance d of two words, in float64; the mechanism's weights
    are defined by this number.
    """
    return min(math.sqrt(squared_distance(vectors, word, vectors, proposed)), radius)


@kernel()
def among(members: Members, row: int, word: int) -> bool:  # pragma: no cover - compiled
    """Return whether row ``row`` of the table ``members`` contains a word."""
    for place in range(members.shape[1]):  # noqa: SIM110
        if members[row, place] == word:
            return True
    return False
