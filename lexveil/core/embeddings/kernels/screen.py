"""Compiled loops of the 8-bit preselection in exact nearest-neighbour search.
docs/proofs/screen.md defines the computation and proves that no nearest word is lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Rows, Vectors
from lexveil.core.embeddings.kernels.dot import QUERIES, products
from lexveil.core.embeddings.kernels.search import insert, squared_distance

Bytes = npt.NDArray[Any]

ROUNDING = 2.0**-21  # relative error of a single-precision sum, eight roundings
# factor by which a bound is enlarged, to cover its own rounding in single precision
MORE = 1 + 2.0**-18
NOTHING = 1e-30  # bound on the loss by underflow
SHORTEST = 1e-15  # shorter vectors are replaced by 0, and their whole length counts as error
# Scores of longer or shorter queries do not fit into single precision; another search answers them.
SHORTEST_QUERY = 1e-12
LONGEST_DISTANCE = 1e12


class PackedWords(NamedTuple):
    """Word vectors rounded to 8 bits, sorted by falling length, in tiles.

    Attributes:
        numbers: (tiles, chunks, depth, vectors, lanes, 4) int8.
        start: (tiles, chunks, vectors, lanes or twice as many), the initial values of the sums.
        scales: (tiles, vectors, lanes) float32, the rounding step of each word.
        halves: (tiles, vectors, lanes) float32, half of the square of each word's length; infinite
            in an empty lane.
        errors: (tiles, 3) float32, the two numbers by which the factors of a query's error are
            multiplied, and a fixed error.
        ends: (tiles, 2), lengths of the longest and the shortest word.
    """

    numbers: Bytes
    start: Bytes
    scales: Vectors
    halves: Vectors
    errors: Vectors
    ends: Floats


class PackedQueries(NamedTuple):
    """Query vectors rounded to 8 bits, in tiles.

    Attributes:
        numbers: (tiles, chunks, depth, QUERIES, 4) uint8.
        factors: (tiles, 4, QUERIES) float32: rounding steps, the minimum scores of a candidate, and
            two factors of the rounding error.
        lengths: (n,) length of each query.
        slacks: (n,) bound on the loss of the final decision in float64.
    """

    numbers: Bytes
    factors: Vectors
    lengths: Floats
    slacks: Floats


class CandidateLists(NamedTuple):
    """Lists of the words that may be among the k nearest of each of n queries.

    Attributes:
        lows: (n, k) the k largest lower bounds on scores.
        places: (n, room) the candidate words.
        highs: (n, room) upper bounds of the candidates' scores.
        counts: (n,) the number of candidates; -1 if there are more than ``room``.
    """

    lows: Floats
    places: Rows
    highs: Floats
    counts: Rows


@kernel()
def round_row(
    row: Floats, most: int, lane: float, depth: int, rounded: Bytes
) -> tuple[float, float, float]:  # pragma: no cover - compiled
    """Round a vector to whole multiples of a step. Return the step, the length of the rounded
    vector, and the length of the rounding error.

    No number exceeds ``most``. If ``lane`` is above 0, it limits the length of each part of the row
    that one 16-bit sum adds up. Such a part consists of ``depth`` times four coordinates in
    sequence, of which the sum uses the first two or the last two of every four.
    """
    largest = 0.0
    longest = 0.0
    for first in range(0, len(row), 4 * depth):
        for half in range(2):
            share = 0.0
            for four in range(first, min(first + 4 * depth, len(row)), 4):
                for i in range(four + 2 * half, min(four + 2 * half + 2, len(row))):
                    largest = max(largest, abs(row[i]))
                    share += row[i] * row[i]
            longest = max(longest, share)
    step = largest / most
    # rounding lengthens the part of 2·depth numbers by at most the root of depth / 2
    if lane > 0:
        step = max(step, np.sqrt(longest) / (lane - np.sqrt(depth / 2)))
    step = float(np.float32(step * (1 + 1e-6)))
    size = 0.0
    lack = 0.0
    for i in range(len(row)):
        number = np.rint(row[i] / step) if step > 0 else 0.0
        rounded[i] = number
        near = step * number
        size += near * near
        lack += (row[i] - near) * (row[i] - near)
    return step, np.sqrt(size), np.sqrt(lack)


@kernel()
def centred(
    values: Vectors | Floats, centre: Floats, row: Floats
) -> float:  # pragma: no cover - compiled
    """Subtract the centre from a vector and write the difference into ``row``, in float64; return
    its squared length.
    """
    square = 0.0
    for i in range(len(row)):
        row[i] = np.float64(values[i]) - centre[i]
        square += row[i] * row[i]
    return square


@kernel()
def pack_words(
    vectors: Vectors,
    order: Rows,
    centre: Floats,
    most: int,
    lane: float,
    words: PackedWords,
    bounds: Floats,
) -> None:  # pragma: no cover - compiled
    """Round the word vectors to 8 bits, in the given order, and write them into ``words``. Write
    into ``bounds`` (V, 2) the length of each rounded word and the length of its rounding error.
    """
    depth, n_vectors, lanes = words.numbers.shape[2:5]
    p = vectors.shape[1]
    row = np.empty(p)
    rounded = np.zeros(p, dtype=np.int16)
    for place in range(len(order)):
        square = centred(vectors[order[place]], centre, row)
        tile = place // (n_vectors * lanes)
        rest = place % (n_vectors * lanes)
        vector = rest // lanes
        lane_of_word = rest % lanes
        words.halves[tile, vector, lane_of_word] = square / 2
        if square < SHORTEST * SHORTEST:
            bounds[place, 1] = np.sqrt(square)
            continue
        step, bounds[place, 0], bounds[place, 1] = round_row(row, most, lane, depth, rounded)
        words.scales[tile, vector, lane_of_word] = step
        for i in range(p):
            four = i // 4
            words.numbers[tile, four // depth, four % depth, vector, lane_of_word, i % 4] = rounded[
                i
            ]


@kernel()
def pack_queries(
    queries: Floats, centre: Floats, lane: float, offset: int, packed: PackedQueries
) -> None:  # pragma: no cover - compiled
    """Round query vectors to 8 bits and write them into ``packed``, with their lengths, rounding
    steps, minimum scores and error factors.
    """
    depth = packed.numbers.shape[2]
    p = queries.shape[1]
    row = np.empty(p)
    rounded = np.zeros(p, dtype=np.int16)
    packed.numbers[:] = offset
    packed.factors[:] = 0.0
    packed.factors[:, 1] = np.inf
    for query in range(len(queries)):
        length = packed.lengths[query] = np.sqrt(centred(queries[query], centre, row))
        tile = query // QUERIES
        place = query % QUERIES
        if not SHORTEST_QUERY < length < LONGEST_DISTANCE:
            continue
        step, size, lack = round_row(row, offset - 1, lane, depth, rounded)
        for i in range(p):
            four = i // 4
            packed.numbers[tile, four // depth, four % depth, place, i % 4] = rounded[i] + offset
        packed.factors[tile, 0, place] = step
        packed.factors[tile, 1, place] = -np.inf
        packed.factors[tile, 2, place] = (lack + ROUNDING * size) * MORE
        packed.factors[tile, 3, place] = length * MORE


@kernel()
def keep(
    score: float,
    error: float,
    word: int,
    slack: float,
    lows: Floats,
    places: Rows,
    highs: Floats,
    count: int,
) -> int:  # pragma: no cover - compiled
    """Add a word to a query's candidates if the word may be among the k nearest. Return the new
    number of candidates, or -1 if there are more than the list can take.
    """
    low = score - error
    k = len(lows)
    if low > lows[k - 1]:
        rank = k - 1
        while rank > 0 and low > lows[rank - 1]:
            lows[rank] = lows[rank - 1]
            rank -= 1
        lows[rank] = low
    if count == len(places):
        wanted = lows[k - 1] - slack
        count = 0
        for i in range(len(places)):
            if highs[i] >= wanted:
                places[count] = places[i]
                highs[count] = highs[i]
                count += 1
        if count > len(places) * 3 // 4:
            return -1
    places[count] = word
    highs[count] = score + error
    return count + 1


@functools.cache
def screen_by(kind: int) -> Callable[..., None]:
    """Compile ``screen`` for one processor instruction, given by its index ``kind`` in ``KINDS``,
    which must be a constant in the compiled code.
    """

    @kernel(nogil=True)
    def screen(
        words: PackedWords, queries: PackedQueries, lists: CandidateLists, n_words: int
    ) -> None:  # pragma: no cover - compiled
        """Find the words that may be among the k nearest of each query, with upper bounds on their
        scores, and write them into ``lists``.
        """
        n_tiles, n_chunks, depth, n_vectors, lanes = words.numbers.shape[:5]
        factors = queries.factors
        lengths = queries.lengths
        slacks = queries.slacks
        lows = lists.lows
        places = lists.places
        highs = lists.highs
        counts = lists.counts
        n_query_tiles = len(factors)
        width = n_vectors * lanes
        out = np.empty((QUERIES, width), dtype=np.float32)
        # Least and greatest length of a word that can be among the nearest of each query.
        within = np.empty((len(lengths), 2))
        for query in range(len(lengths)):
            within[query, 0], within[query, 1] = (
                (-np.inf, np.inf) if counts[query] >= 0 else (np.inf, -np.inf)
            )
        least = np.full(n_query_tiles, -np.inf)
        most = np.full(n_query_tiles, np.inf)
        word_bytes = n_chunks * depth * width * 4
        start_bytes = words.start[0].size * words.start.itemsize
        query_bytes = n_chunks * depth * QUERIES * 4
        factor_bytes = 4 * QUERIES * 4
        words_at = words.numbers.ctypes.data
        start_at = words.start.ctypes.data
        queries_at = queries.numbers.ctypes.data
        scales_at = words.scales.ctypes.data
        halves_at = words.halves.ctypes.data
        errors_at = words.errors.ctypes.data
        factors_at = factors.ctypes.data
        out_at = out.ctypes.data
        for tile in range(n_tiles):
            longest = words.ends[tile, 0]
            shortest = words.ends[tile, 1]
            open_below = False
            of_length = words.errors[tile, 0]
            of_residual = words.errors[tile, 1]
            fixed = words.errors[tile, 2]
            for some in range(n_query_tiles):
                if longest < least[some]:
                    continue
                open_below = True
                if shortest > most[some]:
                    continue
                addresses = (
                    words_at + tile * word_bytes,
                    start_at + tile * start_bytes,
                    queries_at + some * query_bytes,
                    scales_at + tile * width * 4,
                    halves_at + tile * width * 4,
                    errors_at + tile * 12,
                    factors_at + some * factor_bytes,
                    out_at,
                )
                if not products(kind, addresses, n_chunks, depth):
                    continue
                moved = False
                for place in range(QUERIES):
                    query = some * QUERIES + place
                    if query >= len(lengths) or counts[query] < 0:
                        continue
                    wanted = lows[query, -1] - slacks[query]
                    error = (
                        np.float64(factors[some, 2, place]) * of_length
                        + np.float64(factors[some, 3, place]) * of_residual
                        + fixed
                    ) * MORE
                    may = False
                    for word in range(width):
                        may |= np.float64(out[place, word]) + error >= wanted
                    if not may:
                        continue
                    for word in range(min(width, n_words - tile * width)):
                        score = np.float64(out[place, word])
                        if score + error >= wanted:
                            counts[query] = keep(
                                score,
                                error,
                                tile * width + word,
                                slacks[query],
                                lows[query],
                                places[query],
                                highs[query],
                                counts[query],
                            )
                            wanted = lows[query, -1] - slacks[query]
                            if counts[query] < 0:
                                break
                    factors[some, 1, place] = (
                        np.inf if counts[query] < 0 else wanted - abs(wanted) * 2.0**-20
                    )
                    length = lengths[query]
                    far = np.sqrt(
                        max(length**2 - 2 * wanted, 0.0) + 1e-14 * (length**2 + 2 * abs(wanted))
                    )
                    far += 1e-9 * (length + far)
                    within[query, 0] = length - far
                    within[query, 1] = length + far
                    if counts[query] < 0:
                        within[query, 0] = np.inf
                        within[query, 1] = -np.inf
                    moved = True
                if moved:
                    of_tile = within[some * QUERIES : (some + 1) * QUERIES]
                    least[some], most[some] = of_tile[:, 0].min(), of_tile[:, 1].max()
            if not open_below:
                break

    compiled: Callable[..., None] = screen
    return compiled


@kernel()
def decide(
    vectors: Vectors,
    order: Rows,
    queries: Floats,
    packed: PackedQueries,
    lists: CandidateLists,
    ids: Rows,
    squares: Floats,
) -> None:  # pragma: no cover - compiled
    """Compute the candidates' distances in float64, the most promising candidates first, until no
    other word can be among the k nearest.
    """
    k = ids.shape[1]
    for query in range(len(queries)):
        length = packed.lengths[query]
        slack = packed.slacks[query]
        highs = lists.highs[query]
        wanted = lists.lows[query, k - 1] - slack
        count = lists.counts[query]
        for _ in range(count):
            best = highs[:count].argmax()
            if highs[best] < wanted:
                break
            highs[best] = -np.inf
            row = order[lists.places[query, best]]
            insert(row, squared_distance(vectors, row, queries, query), ids[query], squares[query])
            wanted = max(wanted, (length * length - squares[query, k - 1]) / 2 - slack)
