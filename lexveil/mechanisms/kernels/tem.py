"""Rejection samplers of TEM."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

from lexveil.embeddings.exact_search import squared_distance_of_rows
from lexveil.embeddings.sketch import prefetch, sketch_bounds
from lexveil.mechanisms.noise.keystream import UNITS, next_units, open_stream
from lexveil.types import Flags, Floats, Ids, Steps, Vectors, Words

Members = npt.NDArray[np.int32]
Bounds = npt.NDArray[np.float32]

LOG2_E = math.log2(math.e)
MARGIN = 1e-9  # of a bound, far more than rounding


@numba.njit(cache=True)
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
    plain: Flags,
    attempts: int,
) -> Ids:  # pragma: no cover - compiled
    """Draw by uniform proposals, where ``plain``, or by clusters; -1 where a list is quicker or attempts ran out."""
    n_words, n_clusters = len(vectors), len(ends) - 1
    state, units = np.empty(16, dtype=np.uint32), np.empty(UNITS)
    # A float64's bits, read as an integer, grow as the logarithm but for straight lines between powers of two, which
    # lie above 2^x: an envelope that is at most 6 % too large, and quick.
    bits = np.empty(n_clusters, dtype=np.int64)
    half_way = 1  # of a search among a power of two of edges
    while 2 * half_way < n_clusters:
        half_way *= 2
    edges = np.full(2 * half_way, np.inf)
    weights = bits.view(np.float64)
    out = np.full(len(ids), -1)
    for token in range(len(ids)):
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        own = place[word]
        total = 0.0
        if not plain[token]:
            for c in range(n_clusters):
                power = max(-half * LOG2_E * min(np.float64(nearest[word, c]), radius), -1000.0)
                bits[c] = np.int64((power + 1023.0) * 2.0**52)
            total = 1.0  # the word itself
            for c in range(n_clusters):
                total += (ends[c + 1] - ends[c]) * weights[c]
                edges[c] = total
            if total > proposals[word] * (1 + n_words * math.exp(-half * min(mean_distance[word], radius))):
                continue
        open_stream(state, keys, token, 0)
        at = UNITS
        before, limit_before = -1, 0.0
        for _ in range(attempts):
            if at > UNITS - 3:  # of which a proposal takes up to three
                next_units(state, units)
                at = 0
            if plain[token]:
                there = min(int(units[at] * n_words), n_words - 1)
                limit = -math.log(units[at + 1]) / half if units[at + 1] > 0 else np.inf
            elif units[at] * total < 1:
                there, limit = own, np.inf
            else:
                c, step = 0, half_way
                while step:  # without a branch to guess
                    c += step * (edges[c + step - 1] <= units[at] * total)
                    step //= 2
                c = min(c, n_clusters - 1)
                size = ends[c + 1] - ends[c]
                there = ends[c] + min(int(units[at + 1] * size), size - 1)
                limit = -(math.log(weights[c]) + math.log(units[at + 2])) / half if units[at + 2] > 0 else np.inf
                if there == own:
                    limit = -np.inf
            at += 3
            # Decide on the proposal before this one, while the memory of this one is on its way.
            prefetch(rows, there)  # type: ignore[call-arg]
            if before >= 0:
                near, far = sketch_bounds(rows, length, own, before)
                if accepted(vectors, word, order[before], radius, limit_before, near, far):
                    out[token] = order[before]
                    break
            before, limit_before = there, limit
    return out


@numba.njit(cache=True)
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
) -> Ids:  # pragma: no cover - compiled
    """Draw by shells of the nearest words, and all others."""
    n_words, n_shells, n_near = len(vectors), len(shells) - 1, members.shape[1]
    beyond = n_words - n_near > 0
    state, units = np.empty(16, dtype=np.uint32), np.empty(UNITS)
    envelope = np.empty(n_shells + 1)
    out = np.full(len(ids), -1)
    for token in range(len(ids)):
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        open_stream(state, keys, token, 1)
        at = UNITS
        total = 0.0
        for shell in range(n_shells):
            size = shells[shell + 1] - shells[shell]
            envelope[shell] = size * math.exp(-half * min(bounds[word, shell], radius))
            total += envelope[shell]
        # Proposed among all words, so the near ones are proposed again there, and refused.
        envelope[n_shells] = n_words * math.exp(-half * min(bounds[word, n_shells], radius)) if beyond else 0.0
        total += envelope[n_shells]
        while out[token] < 0:
            if at > UNITS - 3:
                next_units(state, units)
                at = 0
            unit = units[at]
            at += 1
            left = unit * total
            shell = 0
            last = n_shells if beyond else n_shells - 1
            while shell < last and left >= envelope[shell]:
                left -= envelope[shell]
                shell += 1
            unit = units[at]
            at += 1
            if shell < n_shells:
                size = shells[shell + 1] - shells[shell]
                proposed = int(members[word, shells[shell] + min(int(unit * size), size - 1)])
                near, far = bounds[word, shell], bounds[word, shell + 1]  # as the shells are nested
            else:
                proposed = min(int(unit * n_words), n_words - 1)
                near, far = sketch_bounds(rows, length, place[word], place[proposed])
            unit = units[at]
            at += 1
            limit = min(bounds[word, shell], radius) - math.log(unit) / half if unit > 0 else np.inf
            if accepted(vectors, word, proposed, radius, limit, near, far) and (
                shell < n_shells or not among(members, word, proposed)
            ):
                out[token] = proposed
    return out


@numba.njit(cache=True)
def accepted(
    vectors: Vectors, word: int, proposed: int, radius: float, limit: float, near: float, far: float
) -> bool:  # pragma: no cover - compiled
    """Whether min(d, radius) is below the limit, d the distance of the two words.

    A proposal is accepted if a uniform number u is below exp(-half·(min(d, radius) - floor)), half = ε/2, where the
    envelope is exp(-half·floor): if min(d, radius) is below the limit floor - ln(u)/half. ``near`` and ``far`` are
    bounds of d, up to rounding. Most often they decide it, and no vector need be fetched; with the margin left to
    them, they decide as d would.
    """
    if min(far, radius) * (1 + MARGIN) < limit:
        return True
    if min(near, radius) * (1 - MARGIN) > limit:
        return False
    return min(math.sqrt(squared_distance_of_rows(vectors, word, proposed)), radius) < limit


@numba.njit(cache=True)
def among(members: Members, row: int, word: int) -> bool:  # pragma: no cover - compiled
    """Whether a word is in a row of ``members``."""
    for place in range(members.shape[1]):  # noqa: SIM110 - compiled
        if members[row, place] == word:
            return True
    return False
