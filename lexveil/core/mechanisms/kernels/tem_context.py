"""Compiled rejection sampler of the mechanism ``tem_context``. It draws one token after the other,
because proposals depend on the word written before.

The weight of word u after c is m(u|c)·exp(-half·s), half = ε/2, s = min(d, γ), m a whole number.
Each near word has its own envelope (upper bound on its weight) W >= 2^30·exp(-half·s). All words
together have another envelope, which holds at the largest distance of the list. A uniform whole
number below Σ m·W gives a word and a position in [0, W), which 22 further bits refine. The word is
accepted as in ``kernels.tem``, at 2^52·exp(-half·s). Each word is drawn with exactly its weight,
whatever the envelopes are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Flags, Floats, Ids, Words
from lexveil.core.embeddings.kernels.sketch import sketch_bounds
from lexveil.core.mechanisms.kernels.keystream import WORDS, next_words, open_stream
from lexveil.core.mechanisms.kernels.tem import (
    ACCEPT,
    REFUSE,
    Members,
    WordTable,
    among,
    decide,
    least_mask,
    next_point,
)
from lexveil.core.mechanisms.rejection import FOLLOWS, KEPT, MARGIN, ROUNDING, SKIPPED

ENVELOPE_BITS = 30
FINE_BITS = 22


Near = tuple[Members, Floats, Ids]


class Mass(NamedTuple):
    """Base measure in context, with cumulative sums, for V words and for E pairs of a token and a
    word after it.

    Attributes:
        single: (V,) mass of each word.
        singles: (V + 1,) cumulative sums of ``single``.
        starts: (R + 1,) position of the first pair of each of R tokens, then E.
        ids: (E,) the word of each pair.
        after: (E,) additional mass of the word after the token.
        afters: (E + 1,) cumulative sums of ``after``.
    """

    single: Ids
    singles: Ids
    starts: Ids
    ids: Members
    after: Ids
    afters: Ids


class Walk(NamedTuple):
    """State of drawing the n tokens of some texts in order.

    Attributes:
        is_first: whether the token begins a text.
        kind: DRAWN, FOLLOWS, KEPT or SKIPPED (``rejection``).
        about: a number whose meaning depends on ``kind``. DRAWN: the number of the token among the
            drawn tokens. FOLLOWS: the position of the token whose output it copies. KEPT: the row
            of the token in the bigrams, or -1.
        before: output: the row of the token before each token, or -1.
        drawn: the word drawn for each token. A word that is present at the start is not drawn
            again.
    """

    is_first: Flags
    kind: Ids
    about: Ids
    before: Ids
    drawn: Ids


class Drawn(NamedTuple):
    """Table of the m tokens that are drawn.

    Attributes:
        ids: (m,) their words; -1 for a token that is drawn by the base measure alone.
        epsilon, gamma: (m,) ε and γ.
        keys: (m, 4) keys of their random streams.
        places: (m,) row of each token's list of near words.
        refused: (m,) number of proposals already refused.
    """

    ids: Ids
    epsilon: Floats
    gamma: Floats
    keys: Words
    places: Ids
    refused: Ids


@kernel(error_model="numpy")
def walk_on(
    space: WordTable, mass: Mass, walk: Walk, drawn: Drawn, near: Near, start: int, doubt: Ids
) -> int:  # pragma: no cover - compiled
    """Draw the tokens of texts in order, beginning with the token ``start``, until one is
    undecided.

    Args:
        near: lists of near words, their distances, and (V,) the row of the written token for each
            word.
        doubt: (3,) output for an undecided token: the proposed word, its position, the number of
            the proposal.

    Returns:
        The position of the first undecided token; n if all are drawn.
    """
    written = near[2]
    before = walk.before[start] if start < len(walk.kind) else np.int64(-1)
    for place in range(start, len(walk.kind)):
        if walk.is_first[place]:
            before = np.int64(-1)
        walk.before[place] = before
        kind = walk.kind[place]
        about = walk.about[place]
        if kind == SKIPPED:
            continue
        if kind == KEPT:
            before = about
            continue
        if kind == FOLLOWS:
            walk.drawn[place] = walk.drawn[about]
        elif walk.drawn[place] < 0:
            word = _draw(space, mass, drawn, about, before, near, doubt)
            if word < 0:
                return place
            walk.drawn[place] = word
        before = written[walk.drawn[place]]
    return len(walk.kind)


@kernel(error_model="numpy")
def _draw(
    space: WordTable,
    mass: Mass,
    drawn: Drawn,
    token: np.int64,
    before: np.int64,
    near: Near,
    doubt: Ids,
) -> np.int64:  # pragma: no cover - compiled
    """Draw and return the replacement of one token. Return -1 and write ``doubt`` if rounding
    could change the replacement.
    """
    near_ids, near_distances, _ = near
    state = np.empty(16, dtype=np.uint32)
    stream = np.empty(WORDS, dtype=np.uint64)
    open_stream(state, drawn.keys, int(token), 0)
    at = WORDS
    attempt = -1
    first = last = np.int64(0)
    if before >= 0:
        first = mass.starts[before]
        last = mass.starts[before + 1]
    all_words = mass.singles[-1] + mass.afters[last] - mass.afters[first]
    word = drawn.ids[token]
    n_near = near_ids.shape[1]
    if word < 0:
        point, at = next_point(state, stream, at, all_words, least_mask(all_words))
        return _word_at(mass, point, first, last)
    half = drawn.epsilon[token] / 2
    radius = drawn.gamma[token]
    place = drawn.places[token]
    ends = np.empty(n_near, dtype=np.int64)
    envelope = np.empty(n_near, dtype=np.int64)
    total = np.int64(0)
    for i in range(n_near):
        envelope[i] = _envelope(half, near_distances[place, i], radius)
        member = near_ids[place, i]
        total += envelope[i] * (mass.single[member] + _after(mass, member, first, last))
        ends[i] = total
    near_total = total
    # The last group proposes all words; near words proposed there are refused.
    far = (
        _envelope(half, near_distances[place, n_near - 1], radius)
        if len(mass.single) > n_near
        else np.int64(0)
    )
    total += all_words * far
    mask = least_mask(total)
    while True:
        attempt += 1
        point, at = next_point(state, stream, at, total, mask)
        if at == WORDS:
            next_words(state, stream)
            at = 0
        fine = np.int64(stream[at] & np.uint64((1 << FINE_BITS) - 1))
        at += 1
        is_near = point < near_total
        if is_near:
            listed = np.searchsorted(ends, point, side="right")
            proposed = np.int64(near_ids[place, listed])
            q = (ends[listed] - 1 - point) % envelope[listed]
            bounds = near_distances[place, listed], near_distances[place, listed]
        else:
            proposed = _word_at(mass, (point - near_total) // far, first, last)
            q = (point - near_total) % far
            bounds = sketch_bounds(space.sketches, space.step, int(word), int(proposed))
        if attempt < drawn.refused[token]:
            continue
        q = (q << FINE_BITS) + fine
        decision = decide(
            space.vectors,
            (int(word), int(proposed)),
            half,
            radius,
            q,
            ENVELOPE_BITS + FINE_BITS,
            bounds,
        )
        if decision == REFUSE or (not is_near and among(near_ids, int(place), int(proposed))):
            continue
        if decision == ACCEPT:
            return proposed
        doubt[0] = proposed
        doubt[1] = q
        doubt[2] = attempt
        return np.int64(-1)


@numba.njit(inline="always")
def _envelope(
    half: float, distance: float, radius: float
) -> np.int64:  # pragma: no cover - compiled
    """Return an envelope of a word's weight: a whole number >= 2^30·exp(-half·min(d, radius)). The
    envelope also holds if another order of additions gives a slightly smaller d.
    """
    weight = math.exp(-half * min(distance * (1 - ROUNDING), radius))
    scale = np.int64(1) << ENVELOPE_BITS
    return min(scale, np.int64(weight * (1 + MARGIN) * scale) + 1)


@numba.njit(inline="always")
def _after(
    mass: Mass, word: np.int64, first: np.int64, last: np.int64
) -> np.int64:  # pragma: no cover - compiled
    """Return the amount by which a word's base measure is larger after a given token. Rows
    ``first`` to ``last`` - 1 are the bigrams of that token.
    """
    end = last
    while first < last:
        middle = (first + last) // 2
        if mass.ids[middle] < word:
            first = middle + 1
        else:
            last = middle
    return mass.after[first] if first < end and mass.ids[first] == word else np.int64(0)


@numba.njit(inline="always")
def _word_at(
    mass: Mass, point: np.int64, first: np.int64, last: np.int64
) -> np.int64:  # pragma: no cover - compiled
    """Return the word at a point of the cumulative base measure. The masses of all words come
    first, then the additional masses of rows ``first`` to ``last`` - 1.
    """
    if point < mass.singles[-1]:
        return np.int64(np.searchsorted(mass.singles, point, side="right") - 1)
    inside = point - mass.singles[-1] + mass.afters[first]
    return np.int64(
        mass.ids[np.searchsorted(mass.afters[first : last + 1], inside, side="right") - 1 + first]
    )
