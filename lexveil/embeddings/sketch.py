"""Bounds of distances from little memory: a few coordinates of every word, and how much of it they leave out.

All sums here are added in a fixed order, because what a sampler proposes by these bounds decides what it draws.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lexveil.types import Floats, Ids, Steps, Vectors

Coordinates = npt.NDArray[np.float32]

COORDINATES = 31  # with the part left out, one line of cache per word
MOMENT_WORDS, ITERATIONS = 2048, 6  # for the directions of most variance
CLUSTERS, CLUSTER_WORDS, ROUNDS = 128, 8192, 8
STEPS = 32767  # of a coordinate on either side of 0
# Of them, more than what rounding does to 32 coordinates of two words (half a step each), and float32 to the sum.
SLACK = 7.0
BLOCK = 512  # words measured at a time, whose sketches stay in the cache
NARROW = 1 / 12  # of the longest vector: radius of a cluster that is not measured word by word


class Sketch:
    """All words in clusters, with bounds of the distances between them.

    A sketch of a word is its coordinates along the directions in which the words differ most, and the norm of all that
    these leave out. The distance of two words lies between that of their coordinates with the difference, and that
    with the sum, of the norms left out; any orthonormal directions do. Words of a cluster have near sketches; the least
    lower bound over a cluster is a lower bound for all its words.

    Attributes:
        order: (V,) int32, the word at each place; words of a cluster have neighbouring places.
        place: (V,) int32, the place of each word.
        ends: (C + 1,) where the clusters begin and end in that order.
        rows: (V, 32) int16, sketches by place, the norm left out last, in steps.
        step: of a coordinate, in embedding units.
        n_wide: words of the clusters that are measured word by word, the first ones in ``order``.
        nearest: (V, C) float32, for a word and each cluster a lower bound of the distance to the cluster's other words;
            inf where it has none. Only rows of words that were given to ``measure`` hold any.
        measured: (V,) whether a word's row is filled.
    """

    def __init__(self, vectors: Vectors, norms: Floats) -> None:
        n_words, dimensions = vectors.shape
        self.step = (norms.max(initial=0.0) or 1.0) / STEPS
        k = min(COORDINATES, dimensions)
        some = vectors[:: max(1, n_words // MOMENT_WORDS)].astype(np.float64)
        directions = _directions(_moment(some), k) if k < dimensions else np.eye(dimensions)
        rows = _project(vectors, directions, norms, self.step)
        spread = np.ascontiguousarray(rows[:: max(1, n_words // CLUSTER_WORDS)])
        centres = _centres(spread, min(CLUSTERS, max(1, n_words // 8)))
        cluster, sizes, radii = _clusters(rows, centres)
        # The widest first, so that those which are measured word by word lie together.
        widest = np.argsort(-radii, kind="stable")
        widest = widest[sizes[widest] > 0]
        rank = np.empty(len(sizes), dtype=np.int64)
        rank[widest] = np.arange(len(widest))
        self.order = np.argsort(rank[cluster], kind="stable").astype(np.int32)
        self.place = np.empty(n_words, dtype=np.int32)
        self.place[self.order] = np.arange(n_words)
        self.ends: Ids = np.concatenate([[0], np.cumsum(sizes[widest])])
        self._centres, self._radii = centres[widest], radii[widest]
        rows = rows[self.order]
        self.rows = rows.astype(np.int16)
        self.n_wide = int(self.ends[int((self._radii > NARROW * STEPS).sum())])
        self._columns = np.ascontiguousarray(rows[: self.n_wide].T)
        # Filled word by word as they occur; pages that are never written take no memory.
        self.nearest = np.empty((n_words, len(self.ends) - 1), dtype=np.float32)
        self.measured = np.zeros(n_words, dtype=np.bool_)

    def measure(self, words: Ids) -> None:
        """Fill the rows of these words; those that are there already stay."""
        new = np.unique(words)
        new = new[~self.measured[new]]
        _measure(
            self.rows, self._columns, self._centres, self._radii, self.ends, self.place, self.step, new, self.nearest
        )
        self.measured[new] = True


@intrinsic
def prefetch(_context: Any, rows: Any, row: Any) -> Any:  # pragma: no cover - compiled
    """Ask for the memory of a row of a two-dimensional array, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        first = context.get_constant(types.intp, 0)
        place = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
            context, builder, signature.args[0], array, [arguments[1], first]
        )
        integer = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, integer, integer, integer])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "llvm.prefetch.p0"
        )
        # To read (0), to keep in all caches (3), as data (1).
        builder.call(function, [builder.bitcast(place, cgutils.voidptr_t), *map(integer, (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(rows, row), generate


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def sketch_bounds(rows: Steps, step: float, first: int, second: int) -> tuple[float, float]:  # pragma: no cover
    """A lower and an upper bound of the distance of the words at two places; the last digits may differ by machine."""
    square = np.float32(0.0)
    for i in range(rows.shape[1]):  # a length that the compiler knows is unrolled, but not vectorised
        difference = np.float32(np.int32(rows[first, i]) - np.int32(rows[second, i]))
        square += difference * difference
    # (a + b)² = (a - b)² + 4 a b for the norms left out.
    both = 4.0 * rows[first, COORDINATES] * rows[second, COORDINATES]
    return step * (math.sqrt(square) - SLACK), step * (math.sqrt(square + both) + SLACK)


@numba.njit(cache=True)
def _clusters(rows: Coordinates, centres: Coordinates) -> tuple[Ids, Ids, Coordinates]:  # pragma: no cover - compiled
    """The nearest centre of each row, the sizes of the clusters, and their radii."""
    cluster = _nearest_centre(rows, centres)
    sizes, radii = np.zeros(len(centres), dtype=np.int64), np.zeros(len(centres), dtype=np.float32)
    for row in range(len(rows)):
        c = cluster[row]
        sizes[c] += 1
        radii[c] = max(radii[c], np.float32(math.sqrt(_square(rows[row], centres[c]))))
    return cluster, sizes, radii


@numba.njit(cache=True)
def _moment(rows: Floats) -> Floats:  # pragma: no cover - compiled
    """Sum of r_i r_j over rows, (p, p)."""
    dimensions = rows.shape[1]
    moment = np.zeros((dimensions, dimensions))
    for row in rows:
        for i in range(dimensions):
            for j in range(dimensions):
                moment[i, j] += row[i] * row[j]
    return moment


@numba.njit(cache=True)
def _directions(moment: Floats, k: int) -> Floats:  # pragma: no cover - compiled
    """About the k eigenvectors of the largest eigenvalues, as orthonormal (or zero) columns (p, k), by iteration."""
    dimensions = len(moment)
    out = np.zeros((dimensions, k))
    for i in range(dimensions):  # any start that favours no direction
        for j in range(k):
            out[i, j] = math.cos(i * j + 0.5 * i)
    for _ in range(ITERATIONS):
        image = np.zeros((dimensions, k))
        for i in range(dimensions):
            for m in range(dimensions):
                for j in range(k):
                    image[i, j] += moment[i, m] * out[m, j]
        for j in range(k):
            for _ in range(2):  # twice is enough: the first leaves rounding of the first order behind
                for before in range(j):
                    dot = 0.0
                    for i in range(dimensions):
                        dot += image[i, before] * image[i, j]
                    for i in range(dimensions):
                        image[i, j] -= dot * image[i, before]
                square = 0.0
                for i in range(dimensions):
                    square += image[i, j] * image[i, j]
                for i in range(dimensions):
                    image[i, j] = image[i, j] / math.sqrt(square) if square > 0 else 0.0
        out = image
    return out


@numba.njit(cache=True)
def _project(vectors: Vectors, directions: Floats, norms: Floats, step: float) -> Coordinates:  # pragma: no cover
    """Sketches in whole steps."""
    n_words, dimensions = vectors.shape
    k = directions.shape[1]
    rows = np.zeros((n_words, COORDINATES + 1), dtype=np.float32)
    coordinates = np.empty(k)
    for word in range(n_words):
        coordinates[:] = 0.0
        for i in range(dimensions):
            value = np.float64(vectors[word, i])
            for j in range(k):
                coordinates[j] += value * directions[i, j]
        left = norms[word] * norms[word]
        for j in range(k):
            left -= coordinates[j] * coordinates[j]
            rows[word, j] = np.rint(coordinates[j] / step)
        rows[word, COORDINATES] = np.rint(math.sqrt(max(left, 0.0)) / step)
    return rows


@numba.njit(cache=True)
def _centres(rows: Coordinates, n: int) -> Coordinates:  # pragma: no cover - compiled
    """k-means: n centres, the first ones far from each other (the farthest of the rows, one after the other)."""
    centres = np.zeros((n, rows.shape[1]), dtype=np.float32)
    for round_ in range(ROUNDS + 1):
        if round_ == 0:
            away = np.full(len(rows), np.float32(np.inf))
            chosen = 0
            for c in range(n):
                centres[c] = rows[chosen]
                weight = 0.0
                for row in range(len(rows)):
                    away[row] = min(away[row], _square(rows[row], centres[c]))
                    weight += away[row]
                # The row where half and a bit of the squares are passed: spread as k-means++ would, without chance.
                target = weight * ((c * 0.6180339887498949 + 0.5) % 1.0)
                for row in range(len(rows)):
                    target -= away[row]
                    if target < 0:
                        chosen = row
                        break
            continue
        cluster = _nearest_centre(rows, centres)
        sums, counts = np.zeros((n, rows.shape[1])), np.zeros(n)
        for row in range(len(rows)):
            counts[cluster[row]] += 1
            for j in range(rows.shape[1]):
                sums[cluster[row], j] += rows[row, j]
        for c in range(n):
            if counts[c] > 0:
                for j in range(rows.shape[1]):
                    centres[c, j] = sums[c, j] / counts[c]
    return centres


@numba.njit(cache=True)
def _nearest_centre(rows: Coordinates, centres: Coordinates) -> Ids:  # pragma: no cover - compiled
    cluster = np.empty(len(rows), dtype=np.int64)
    columns = np.ascontiguousarray(centres.T)
    squares = np.empty(len(centres), dtype=np.float32)
    for row in range(len(rows)):
        squares[:] = 0.0
        for j in range(rows.shape[1]):
            for c in range(len(centres)):
                difference = rows[row, j] - columns[j, c]
                squares[c] += difference * difference
        cluster[row] = np.argmin(squares)
    return cluster


@numba.njit(cache=True)
def _square(one: Coordinates, other: Coordinates) -> np.float32:  # pragma: no cover - compiled
    total = np.float32(0.0)
    for i in range(len(one)):
        total += (one[i] - other[i]) * (one[i] - other[i])
    return total


@numba.njit(cache=True, fastmath={"contract"})
def _measure(
    rows: Steps,
    columns: Coordinates,
    centres: Coordinates,
    radii: Coordinates,
    ends: Ids,
    place: npt.NDArray[np.int32],
    step: float,
    words: Ids,
    nearest: Coordinates,
) -> None:  # pragma: no cover - compiled
    """Of each word a lower bound for every cluster: the least of its words, or by its centre and radius."""
    wide, part = columns.shape[1], np.empty(BLOCK, dtype=np.float32)
    for word in words:
        nearest[word] = np.inf
    # Some columns at a time, which stay in the cache for all words.
    for start in range(0, wide, BLOCK):
        end = min(start + BLOCK, wide)
        first = int(np.searchsorted(ends, start, side="right")) - 1
        for word in words:
            own = place[word]
            part[:] = np.float32(0.0)
            for k in range(len(columns)):
                value, column = np.float32(rows[own, k]), columns[k, start:end]
                for i in range(len(column)):
                    difference = value - column[i]
                    part[i] += difference * difference
            if start <= own < end:
                part[own - start] = np.float32(np.inf)
            cluster = first
            while ends[cluster] < end:
                here = part[max(ends[cluster], start) - start : min(ends[cluster + 1], end) - start]
                nearest[word, cluster] = min(nearest[word, cluster], _minimum(here))
                cluster += 1
                if cluster == len(ends) - 1:
                    break
    own_row = np.empty(rows.shape[1], dtype=np.float32)
    for word in words:
        for k in range(len(own_row)):
            own_row[k] = rows[place[word], k]
        for cluster in range(len(ends) - 1):
            if ends[cluster] < wide:
                least = math.sqrt(nearest[word, cluster])
            else:
                least = math.sqrt(_square(own_row, centres[cluster])) - radii[cluster]
            nearest[word, cluster] = max(0.0, step * (least - SLACK))


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
def _minimum(values: Coordinates) -> np.float32:  # pragma: no cover - compiled
    least = np.float32(np.inf)
    for value in values:
        least = min(least, value)
    return least
