"""Rejection samplers of TEM, exact: integers are drawn, and what rounding could decide is left to exact arithmetic.

The weight of word u is exp(-half·s), half = ε/2, s = min(d, γ), d the distance in float64. In units of 1/S every group
of words has an envelope, a whole number W >= S·exp(-half·s) for all of its words. A uniform real point on the length
Σ size·W is a group, a word of it and a position q in [0, W); the word is accepted if q < S·exp(-half·s). So each word
is drawn with exactly its weight, whatever the envelopes are. Of the point the whole part is drawn first; unless the
acceptance is then decided beyond any rounding, the token is handed back as undecided.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from lexveil.embeddings.kernels.search import squared_distance_of_rows
from lexveil.embeddings.kernels.sketch import prefetch, sketch_bounds
from lexveil.mechanisms.kernels.keystream import WORDS, State, next_words, open_stream
from lexveil.mechanisms.rejection import LOG2_E, MARGIN, PENDING, ROUNDING, UNDECIDED
from lexveil.types import Floats, Ids, Steps, Vectors, Words

Members = npt.NDArray[np.int32]
Bounds = npt.NDArray[np.float32]

REFUSE, ACCEPT, UNSURE = 0, 1, 2


@numba.njit(cache=True, error_model="numpy")
def draw_by_sketch(
    vectors: Vectors,
    rows: Steps,
    length: float,
    order: Members,
    place: Members,
    ends: Ids,
    nearest: Bounds,
    mean_distance: Floats,
    proposals: Floats,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
    plain: npt.NDArray[np.bool_],
    attempts: int,
    bits: int,
    refused: Ids,
    doubts: Ids,
) -> Ids:  # pragma: no cover - compiled
    """Draw by uniform proposals, where ``plain``, or by clusters.

    Args:
        bits: S is 2 to this power.
        refused: (n,) proposals of each token that are refused already.
        doubts: (n, 3) written for an undecided token: the proposed word, its position q, the number of the proposal.

    Returns:
        (n,) words; PENDING where a list is quicker or attempts ran out; UNDECIDED.
    """
    n_words, n_clusters = len(vectors), len(ends) - 1
    scale = np.int64(1) << bits
    state, stream = np.empty(16, dtype=np.uint32), np.empty(WORDS, dtype=np.uint64)
    # A float64's bits, read as an integer, grow as the logarithm but for straight lines between powers of two, which
    # lie above 2^x: an envelope that is at most 6 % too large, and quick.
    logarithm = np.empty(1, dtype=np.int64)
    power_of = logarithm.view(np.float64)
    envelope = np.empty(n_clusters, dtype=np.int64)
    half_way = 1  # of a search among a power of two of edges
    while 2 * half_way < n_clusters:
        half_way *= 2
    edges = np.full(2 * half_way, np.iinfo(np.int64).max)
    out = np.full(len(ids), PENDING)
    for token in range(len(ids)):
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        own = place[word]
        total = np.int64(n_words) << bits
        if not plain[token]:
            total = scale  # the word itself
            for c in range(n_clusters):
                power = max(-half * LOG2_E * min(np.float64(nearest[word, c]), radius), -1000.0)
                logarithm[0] = np.int64((power + 1023.0) * 2.0**52)
                envelope[c] = min(scale, np.int64(power_of[0] * (1 + MARGIN) * scale) + 1)
                total += (ends[c + 1] - ends[c]) * envelope[c]
                edges[c] = total
            few = proposals[word] * (1 + n_words * math.exp(-half * min(mean_distance[word], radius)))
            if total > few * scale:
                continue
        mask = _mask(total)
        open_stream(state, keys, token, 0)
        at = WORDS
        before, q_before = -1, np.int64(0)
        for attempt in range(attempts):
            point, at = _next_point(state, stream, at, total, mask)
            if plain[token]:
                there, q = point >> bits, point & (scale - 1)
            elif point < scale:
                there, q = np.int64(own), np.int64(-1)
            else:
                c, step = 0, half_way
                while step:  # without a branch to guess
                    c += step * (edges[c + step - 1] <= point)
                    step //= 2
                start = edges[c - 1] if c else scale
                there = (point - start) // envelope[c]
                q = point - start - there * envelope[c]
                there += ends[c]
                if there == own:
                    q = scale  # it has a group of its own
            # Decide on the proposal before this one, while the memory of this one is on its way.
            prefetch(rows, there)  # type: ignore[call-arg]
            if before >= 0 and attempt > refused[token]:
                near, far = sketch_bounds(rows, length, own, before)
                decision = decide(vectors, word, order[before], half, radius, q_before, bits, near, far)
                if decision != REFUSE:
                    out[token] = order[before] if decision == ACCEPT else UNDECIDED
                    doubts[token, 0], doubts[token, 1], doubts[token, 2] = order[before], q_before, attempt - 1
                    break
            before, q_before = there, q
    return out


@numba.njit(cache=True, error_model="numpy")
def draw_from_lists(
    vectors: Vectors,
    rows: Steps,
    length: float,
    place: Members,
    members: Members,
    bounds: Floats,
    shells: Ids,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
    bits: int,
    refused: Ids,
    doubts: Ids,
) -> Ids:  # pragma: no cover - compiled
    """Draw by shells of the nearest words, and all others; as ``draw_by_sketch``, but never PENDING."""
    n_words, n_shells, n_near = len(vectors), len(shells) - 1, members.shape[1]
    scale = np.int64(1) << bits
    state, stream = np.empty(16, dtype=np.uint32), np.empty(WORDS, dtype=np.uint64)
    envelope, size = np.empty(n_shells + 1, dtype=np.int64), np.empty(n_shells + 1, dtype=np.int64)
    size[:n_shells] = shells[1:] - shells[:-1]
    # Proposed among all words, so the near ones are proposed again there, and refused.
    size[n_shells] = n_words if n_words > n_near else 0
    out = np.full(len(ids), PENDING)
    for token in range(len(ids)):
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        open_stream(state, keys, token, 1)
        at = WORDS
        total = np.int64(0)
        for shell in range(n_shells + 1):
            weight = math.exp(-half * min(bounds[word, shell], radius))
            envelope[shell] = min(scale, np.int64(weight * (1 + MARGIN) * scale) + 1)
            total += size[shell] * envelope[shell]
        mask = _mask(total)
        attempt = -1
        while out[token] == PENDING:
            attempt += 1
            point, at = _next_point(state, stream, at, total, mask)
            if attempt < refused[token]:
                continue
            shell = 0
            while point >= size[shell] * envelope[shell]:
                point -= size[shell] * envelope[shell]
                shell += 1
            proposed = point // envelope[shell]
            q = point - proposed * envelope[shell]
            if shell < n_shells:
                proposed = np.int64(members[word, shells[shell] + proposed])
                near, far = bounds[word, shell], bounds[word, shell + 1]  # as the shells are nested
            else:
                near, far = sketch_bounds(rows, length, place[word], place[proposed])
            decision = decide(vectors, word, proposed, half, radius, q, bits, near, far)
            if decision != REFUSE and (shell < n_shells or not among(members, word, proposed)):
                out[token] = proposed if decision == ACCEPT else UNDECIDED
                doubts[token, 0], doubts[token, 1], doubts[token, 2] = proposed, q, attempt
    return out


@numba.njit(inline="always")
def _next_point(
    state: State, stream: Words, at: int, total: np.int64, mask: np.uint64
) -> tuple[np.int64, int]:  # pragma: no cover - compiled
    """The next uniform whole number below ``total``, and where in ``stream`` the one after it begins."""
    point = total
    while point >= total:
        if at == WORDS:
            next_words(state, stream)
            at = 0
        point = np.int64(stream[at] & mask)
        at += 1
    return point, at


@numba.njit(cache=True)
def _mask(total: np.int64) -> np.uint64:  # pragma: no cover - compiled
    """The least 2^k - 1 that is not below ``total`` - 1: a masked word below ``total`` is uniform."""
    mask = np.uint64(total - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    return mask


@numba.njit(cache=True, error_model="numpy")
def decide(
    vectors: Vectors,
    word: int,
    proposed: int,
    half: float,
    radius: float,
    q: int,
    bits: int,
    near: float,
    far: float,
) -> int:  # pragma: no cover - compiled
    """Whether a proposal at a real position in [q, q + 1) is accepted: below S·exp(-half·min(d, radius)), or UNSURE.

    That is min(d, radius) < -ln(position / S) / half. ``near`` and ``far`` are bounds of d, up to rounding. Most often
    they decide it, and no vector need be fetched; with the margin left to them, they decide as d would. q < 0 accepts
    and q >= S refuses whatever d is.
    """
    if q < 0:
        return ACCEPT
    scale = np.int64(1) << bits
    if q >= scale:
        return REFUSE
    if q > 0:
        limit = -math.log(q / scale) / half
        # The position may be as much as q + 1, and ln(1 + 1/q) <= 1/q.
        least, most = limit * (1 - ROUNDING) - (1 + ROUNDING) / (half * q), limit * (1 + ROUNDING)
    else:
        least, most = math.log(scale) / half * (1 - ROUNDING), np.inf
    if min(far, radius) * (1 + MARGIN) < least:
        return ACCEPT
    if min(near, radius) * (1 - MARGIN) > most:
        return REFUSE
    distance = score(vectors, word, proposed, radius)
    if distance < least:
        return ACCEPT
    return REFUSE if distance > most else UNSURE


@numba.njit(cache=True)
def score(vectors: Vectors, word: int, proposed: int, radius: float) -> float:  # pragma: no cover - compiled
    """min(d, radius) in float64: the number that the mechanism's weights are defined by."""
    return min(math.sqrt(squared_distance_of_rows(vectors, word, proposed)), radius)


@numba.njit(cache=True)
def among(members: Members, row: int, word: int) -> bool:  # pragma: no cover - compiled
    """Whether a word is in a row of ``members``."""
    for place in range(members.shape[1]):  # noqa: SIM110 - compiled
        if members[row, place] == word:
            return True
    return False
