"""The loops of a screen by 8-bit products; what it computes and why it loses nothing: docs/proofs/screen.md."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from lexveil.embeddings.kernels.dot import QUERIES, products
from lexveil.embeddings.kernels.search import squared_distance
from lexveil.types import Floats, Rows, Vectors

Bytes = npt.NDArray[Any]

ROUNDING = 2.0**-21  # of what single precision adds up, eight roundings
MORE = 1 + 2.0**-18  # of a bound, more than computing it in single precision may lose
NOTHING = 1e-30  # above whatever is lost where numbers become too small
SHORTEST = 1e-15  # vectors shorter than this are taken as 0, and all they have as error
# Queries of other lengths are left to another search: single precision has no room for them.
SHORTEST_QUERY, LONGEST = 1e-12, 1e12


@numba.njit(cache=True)
def round_row(
    row: Floats, most: int, lane: float, depth: int, rounded: Bytes
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    """Whole numbers and a step whose product is near the row: the step, the product's length, and what it lacks.

    No number is above ``most``. Where ``lane`` is given, no 16-bit sum's share of them is longer: of ``depth``
    times four coordinates in sequence, the first and the last two of every four.
    """
    largest, longest = 0.0, 0.0
    for first in range(0, len(row), 4 * depth):
        for half in range(2):
            share = 0.0
            for four in range(first, min(first + 4 * depth, len(row)), 4):
                for i in range(four + 2 * half, min(four + 2 * half + 2, len(row))):
                    largest = max(largest, abs(row[i]))
                    share += row[i] * row[i]
            longest = max(longest, share)
    step = largest / most
    if lane > 0:  # rounding makes the share of 2·depth numbers longer by at most the root of depth / 2
        step = max(step, np.sqrt(longest) / (lane - np.sqrt(depth / 2)))
    step = float(np.float32(step * (1 + 1e-6)))
    size, lack = 0.0, 0.0
    for i in range(len(row)):
        number = np.rint(row[i] / step) if step > 0 else 0.0
        rounded[i] = number
        near = step * number
        size += near * near
        lack += (row[i] - near) * (row[i] - near)
    return step, np.sqrt(size), np.sqrt(lack)


@numba.njit(cache=True)
def centred(values: Vectors | Floats, centre: Floats, row: Floats) -> float:  # pragma: no cover - compiled
    """Write a row less the centre to ``row``, in float64; the square of its length."""
    square = 0.0
    for i in range(len(row)):
        row[i] = np.float64(values[i]) - centre[i]
        square += row[i] * row[i]
    return square


@numba.njit(cache=True)
def pack_words(
    vectors: Vectors,
    order: Rows,
    centre: Floats,
    most: int,
    lane: float,
    words: Bytes,
    scales: Vectors,
    halves: Vectors,
    sizes: Floats,
    lacks: Floats,
) -> None:  # pragma: no cover - compiled
    """Round the words, in order, into (tiles, chunks, depth, vectors, lanes, 4) int8, scales and half squares."""
    depth, n_vectors, lanes = words.shape[2], words.shape[3], words.shape[4]
    p = vectors.shape[1]
    row, rounded = np.empty(p), np.zeros(p, dtype=np.int16)
    for place in range(len(order)):
        square = centred(vectors[order[place]], centre, row)
        tile, rest = place // (n_vectors * lanes), place % (n_vectors * lanes)
        vector, at = rest // lanes, rest % lanes
        halves[tile, vector, at] = square / 2
        if square < SHORTEST * SHORTEST:
            lacks[place] = np.sqrt(square)
            continue
        scales[tile, vector, at], sizes[place], lacks[place] = round_row(row, most, lane, depth, rounded)
        for i in range(p):
            four = i // 4
            words[tile, four // depth, four % depth, vector, at, i % 4] = rounded[i]


@numba.njit(cache=True)
def pack_queries(
    queries: Floats,
    centre: Floats,
    most: int,
    lane: float,
    offset: int,
    packed: Bytes,
    of_queries: Vectors,
    lengths: Floats,
) -> None:  # pragma: no cover - compiled
    """Round queries into (tiles, chunks, depth, QUERIES, 4) uint8; their steps, what they want, and error factors."""
    depth = packed.shape[2]
    p = queries.shape[1]
    row, rounded = np.empty(p), np.zeros(p, dtype=np.int16)
    packed[:] = offset
    of_queries[:] = 0.0
    of_queries[:, 1] = np.inf
    for query in range(len(queries)):
        lengths[query] = np.sqrt(centred(queries[query], centre, row))
        tile, at = query // QUERIES, query % QUERIES
        if not SHORTEST_QUERY < lengths[query] < LONGEST:
            continue
        step, size, lack = round_row(row, most, lane, depth, rounded)
        for i in range(p):
            four = i // 4
            packed[tile, four // depth, four % depth, at, i % 4] = rounded[i] + offset
        of_queries[tile, 0, at] = step
        of_queries[tile, 1, at] = -np.inf
        of_queries[tile, 2, at] = (lack + ROUNDING * size) * MORE
        of_queries[tile, 3, at] = lengths[query] * MORE


@numba.njit(cache=True)
def keep(
    score: float,
    error: float,
    place: int,
    slack: float,
    lows: Floats,
    found: Rows,
    highs: Floats,
    count: int,
) -> int:  # pragma: no cover - compiled
    """Note a word that may be among the k nearest of a query; how many are noted now, or -1 if there are too many."""
    low, k = score - error, len(lows)
    if low > lows[k - 1]:
        at = k - 1
        while at > 0 and low > lows[at - 1]:
            lows[at] = lows[at - 1]
            at -= 1
        lows[at] = low
    if count == len(found):
        wanted = lows[k - 1] - slack
        count = 0
        for i in range(len(found)):
            if highs[i] >= wanted:
                found[count], highs[count] = found[i], highs[i]
                count += 1
        if count > len(found) * 3 // 4:
            return -1
    found[count], highs[count] = place, score + error
    return count + 1


@functools.cache
def screen_by(kind: int) -> Callable[..., None]:
    """``screen`` with an instruction, by its index in ``KINDS``, which has to be known when it is compiled."""

    @numba.njit(cache=True, nogil=True)
    def screen(
        words: Bytes,
        start: Bytes,
        scales: Vectors,
        halves: Vectors,
        errors: Vectors,
        ends: Floats,
        n_words: int,
        packed: Bytes,
        of_queries: Vectors,
        lengths: Floats,
        slacks: Floats,
        lows: Floats,
        found: Rows,
        highs: Floats,
        counts: Rows,
    ) -> None:  # pragma: no cover - compiled
        """Find the words that may be among the k nearest of each query, and bounds of their scores from above.

        ``ends``: the longest and the shortest word of each tile, which come longest first. ``counts``: how many words
        were found of each query, -1 where there is no room for them.
        """
        n_tiles, n_chunks, depth = words.shape[0], words.shape[1], words.shape[2]
        n_vectors, lanes = words.shape[3], words.shape[4]
        n_query_tiles, width = len(packed), n_vectors * lanes
        out = np.empty((QUERIES, width), dtype=np.float32)
        # A word can be among the nearest only if its length lies between these.
        within = np.empty((len(lengths), 2))
        for query in range(len(lengths)):
            within[query, 0], within[query, 1] = (-np.inf, np.inf) if counts[query] >= 0 else (np.inf, -np.inf)
        least, most = np.full(n_query_tiles, -np.inf), np.full(n_query_tiles, np.inf)
        word_bytes, start_bytes = n_chunks * depth * width * 4, start[0].size * start.itemsize
        query_bytes, of_bytes = n_chunks * depth * QUERIES * 4, 4 * QUERIES * 4
        words_at, start_at, scales_at, halves_at = (
            words.ctypes.data, start.ctypes.data, scales.ctypes.data, halves.ctypes.data,
        )  # fmt: skip
        errors_at, packed_at, of_at, out_at = (
            errors.ctypes.data, packed.ctypes.data, of_queries.ctypes.data, out.ctypes.data,
        )  # fmt: skip
        for tile in range(n_tiles):
            longest, shortest, open_below = ends[tile, 0], ends[tile, 1], False
            of_length, of_residual, fixed = errors[tile, 0], errors[tile, 1], errors[tile, 2]
            for some in range(n_query_tiles):
                if longest < least[some]:
                    continue
                open_below = True
                if shortest > most[some]:
                    continue
                if not products(
                    kind,
                    words_at + tile * word_bytes,
                    start_at + tile * start_bytes,
                    scales_at + tile * width * 4,
                    halves_at + tile * width * 4,
                    errors_at + tile * 12,
                    packed_at + some * query_bytes,
                    of_at + some * of_bytes,
                    out_at,
                    n_chunks,
                    depth,
                ):
                    continue
                moved = False
                for at in range(QUERIES):
                    query = some * QUERIES + at
                    if query >= len(lengths) or counts[query] < 0:
                        continue
                    wanted = lows[query, -1] - slacks[query]
                    error = (
                        np.float64(of_queries[some, 2, at]) * of_length
                        + np.float64(of_queries[some, 3, at]) * of_residual
                        + fixed
                    ) * MORE
                    may = False
                    for place in range(width):
                        may |= np.float64(out[at, place]) + error >= wanted
                    if not may:
                        continue
                    for place in range(min(width, n_words - tile * width)):
                        score = np.float64(out[at, place])
                        if score + error >= wanted:
                            counts[query] = keep(
                                score, error, tile * width + place, slacks[query],
                                lows[query], found[query], highs[query], counts[query],
                            )  # fmt: skip
                            wanted = lows[query, -1] - slacks[query]
                            if counts[query] < 0:
                                break
                    of_queries[some, 1, at] = np.inf if counts[query] < 0 else wanted - abs(wanted) * 2.0**-20
                    length = lengths[query]
                    far = np.sqrt(max(length**2 - 2 * wanted, 0.0) + 1e-14 * (length**2 + 2 * abs(wanted)))
                    far += 1e-9 * (length + far)
                    within[query, 0], within[query, 1] = length - far, length + far
                    if counts[query] < 0:
                        within[query, 0], within[query, 1] = np.inf, -np.inf
                    moved = True
                if moved:
                    least[some], most[some] = np.inf, -np.inf
                    for query in range(some * QUERIES, min((some + 1) * QUERIES, len(lengths))):
                        least[some] = min(least[some], within[query, 0])
                        most[some] = max(most[some], within[query, 1])
            if not open_below:
                break

    compiled: Callable[..., None] = screen
    return compiled


@numba.njit(cache=True)
def decide(
    vectors: Vectors,
    order: Rows,
    queries: Floats,
    lengths: Floats,
    slacks: Floats,
    lows: Floats,
    found: Rows,
    highs: Floats,
    counts: Rows,
    ids: Rows,
    squares: Floats,
) -> None:  # pragma: no cover - compiled
    """Measure the words found, the most promising first, until no other can be among the k nearest."""
    k = ids.shape[1]
    for query in range(len(queries)):
        wanted, count = lows[query, k - 1] - slacks[query], counts[query]
        for _ in range(count):
            best = 0
            for i in range(count):
                if highs[query, i] > highs[query, best]:
                    best = i
            if highs[query, best] < wanted:
                break
            highs[query, best] = -np.inf
            row = order[found[query, best]]
            square = squared_distance(vectors[row], queries[query])
            place = k - 1
            if square > squares[query, place] or (square == squares[query, place] and row > ids[query, place]):
                continue
            while place > 0 and (
                square < squares[query, place - 1]
                or (square == squares[query, place - 1] and row < ids[query, place - 1])
            ):
                squares[query, place], ids[query, place] = squares[query, place - 1], ids[query, place - 1]
                place -= 1
            squares[query, place], ids[query, place] = square, row
            far = squares[query, k - 1]
            wanted = max(wanted, (lengths[query] * lengths[query] - far) / 2 - slacks[query])
