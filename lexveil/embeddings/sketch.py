"""Bounds of distances from little memory: a few coordinates of every word, and how much of it they leave out.

What a sampler proposes by these bounds decides what it draws, so they must not depend on the processor: sums are added
in a fixed order, coordinate by coordinate. Where most results are known from a matrix product, whose order is the
processor's, only those that its rounding could change are added up so.
"""

from __future__ import annotations

import math

import numpy as np

from lexveil.compiled import worth_kernels
from lexveil.embeddings.sketch_form import COORDINATES, SLACK, STEPS, Coordinates
from lexveil.types import Floats, Ids, Vectors

MOMENT_WORDS, ITERATIONS = 2048, 6  # for the directions of most variance
CLUSTERS, CLUSTER_WORDS, ROUNDS = 128, 8192, 8
BLOCK = 4096  # words projected or measured at a time
PRODUCT = 2**18  # multiplications at most that OpenBLAS leaves to one thread
QUERIES = 64  # words that others are measured from at a time
MEASURE = 2e-8  # seconds that measuring a pair of words takes without kernels
SINGLE = 1e-5  # more than a sum of squares in float32 can lose
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
        # Filled word by word as they occur; pages that are never written take no memory.
        self.nearest = np.empty((n_words, len(self.ends) - 1), dtype=np.float32)
        self.measured = np.zeros(n_words, dtype=np.bool_)

    def measure(self, words: Ids) -> None:
        """Fill the rows of these words; those that are there already stay."""
        new = np.unique(words)
        new = new[~self.measured[new]]
        if worth_kernels(len(new) * int(self.ends[-1]) * MEASURE):
            from lexveil.embeddings.kernels.sketch import measure

            measure(
                self.rows, self._centres, self._radii, self.ends, self.n_wide, self.place, self.step, new, self.nearest
            )
        else:
            for start in range(0, len(new), QUERIES):
                some = new[start : start + QUERIES]
                self.nearest[some] = self._bounds(some)
        self.measured[new] = True

    def _bounds(self, words: Ids) -> Coordinates:
        """Of each of n words a lower bound for every cluster, (n, C): the least of its words, or by its radius."""
        own = self.place[words]
        queries = self.rows[own].astype(np.float64)
        least = np.full((len(words), len(self.ends) - 1), np.inf, dtype=np.float32)
        n_wide = int(np.searchsorted(self.ends, self.n_wide))
        first = 0
        while first < n_wide:  # some whole clusters at a time
            last = max(first + 1, int(np.searchsorted(self.ends, self.ends[first] + BLOCK, side="right")) - 1)
            last = min(last, n_wide)
            places = slice(int(self.ends[first]), int(self.ends[last]))
            starts = self.ends[first:last] - places.start
            rows = self.rows[places].astype(np.float64)
            # Sketches are whole numbers of at most 16 bits, so these squares are exact.
            squares = _exact_squares(queries, rows)
            inside = np.flatnonzero((own >= places.start) & (own < places.stop))
            squares[inside, own[inside] - places.start] = np.inf
            smallest = np.minimum.reduceat(squares, starts, axis=1)
            sizes = np.diff(self.ends[first : last + 1])
            query, row = np.nonzero(squares <= np.repeat(smallest * (1 + SINGLE), sizes, axis=1))
            cluster = first + np.searchsorted(starts, row, side="right") - 1
            chosen = np.isfinite(squares[query, row])
            query, row, cluster = query[chosen], row[chosen], cluster[chosen]
            np.minimum.at(least, (query, cluster), _fused_squares(queries[query], rows[row]))
            first = last
        np.sqrt(least, out=least)
        for c in range(n_wide, least.shape[1]):
            least[:, c] = np.sqrt(_squares(self.rows[own].astype(np.float32), self._centres[c])) - self._radii[c]
        return np.maximum(0.0, self.step * (least.astype(np.float64) - SLACK)).astype(np.float32)


def _exact_squares(left: Floats, right: Floats) -> Floats:
    """|l - r|² of all pairs of rows, (n, m); exact for whole numbers below 2^24, else up to rounding."""
    squares = _product(left, right.T)
    squares *= -2
    squares += np.einsum("nk,nk->n", left, left)[:, None]
    squares += np.einsum("mk,mk->m", right, right)
    return squares


def _product(left: Floats, right: Floats) -> Floats:
    """Matrix product, (n, k) by (k, m), some rows at a time: so small a product starts no threads.

    Of products as narrow as these, threads spend more time waiting for each other than they save.
    """
    product = np.empty((len(left), right.shape[1]))
    rows = max(1, PRODUCT // max(right.size, 1))
    for start in range(0, len(left), rows):
        np.matmul(left[start : start + rows], right, out=product[start : start + rows])
    return product


def _squares(left: Coordinates, right: Coordinates) -> Coordinates:
    """|l - r|² of rows (n, k) and one row or n rows, in float32, added coordinate by coordinate; shape (n,)."""
    total = np.zeros(len(left), dtype=np.float32)
    for k in range(left.shape[1]):
        difference = left[:, k] - right[..., k]
        difference *= difference
        total += difference
    return total


def _fused_squares(left: Floats, right: Floats) -> Coordinates:
    """The same of whole numbers (n, k) and (n, k), where each square is added before it is rounded to float32."""
    total = np.zeros(len(left), dtype=np.float32)
    for k in range(left.shape[1]):
        total = (total + (left[:, k] - right[:, k]) ** 2).astype(np.float32)  # in float64, where both are exact
    return total


def _clusters(rows: Coordinates, centres: Coordinates) -> tuple[Ids, Ids, Coordinates]:
    """The nearest centre of each row, the sizes of the clusters, and their radii."""
    cluster = _nearest_centre(rows, centres)
    radii = np.zeros(len(centres), dtype=np.float32)
    np.maximum.at(radii, cluster, np.sqrt(_squares(rows, centres[cluster])))
    return cluster, np.bincount(cluster, minlength=len(centres)), radii


def _moment(rows: Floats) -> Floats:
    """Sum of r_i r_j over rows, (p, p)."""
    moment = np.zeros((rows.shape[1], rows.shape[1]))
    product = np.empty_like(moment)
    for row in rows:
        np.multiply(row[:, None], row, out=product)
        moment += product
    return moment


def _directions(moment: Floats, k: int) -> Floats:
    """About the k eigenvectors of the largest eigenvalues, as orthonormal (or zero) columns (p, k), by iteration."""
    dimensions = len(moment)
    # Any start that favours no direction.
    out = np.array([[math.cos(i * j + 0.5 * i) for j in range(k)] for i in range(dimensions)])
    for _ in range(ITERATIONS):
        image = np.zeros((dimensions, k))
        for m in range(dimensions):
            image += moment[:, m, None] * out[m]
        columns = np.ascontiguousarray(image.T)
        for j in range(k):
            column = columns[j]  # what the columns before it leave of it, once
            for before in range(j):  # twice is enough: the first leaves rounding of the first order behind
                column -= _dot(column, columns[before]) * columns[before]
            square = _dot(column, column)
            columns[j] = column / math.sqrt(square) if square > 0 else 0.0
            columns[j + 1 :] -= _dot(columns[j + 1 :], columns[j])[..., None] * columns[j]
        out = np.ascontiguousarray(columns.T)
    return out


def _dot(left: Floats, right: Floats) -> Floats:
    """Inner products of rows and a row, added from left to right."""
    summed: Floats = 0.0 + np.cumsum(left * right, axis=-1)[..., -1]
    return summed


def _project(vectors: Vectors, directions: Floats, norms: Floats, step: float) -> Coordinates:
    """Sketches in whole steps."""
    n_words, dimensions = vectors.shape
    k = directions.shape[1]
    rows = np.zeros((n_words, COORDINATES + 1), dtype=np.float32)
    for start in range(0, n_words, BLOCK):
        block = slice(start, start + BLOCK)
        some, out = vectors[block].astype(np.float64), rows[block]
        found = _steps(_product(some, directions), norms[block], step)
        # Sums in another order differ by less than these, in steps; of the part left out, divided by twice itself.
        error = 16 * dimensions * 2.0**-53 * STEPS
        doubtful = (np.abs(found - np.floor(found) - 0.5)[:, :k] <= error).any(axis=1)
        left = found[:, k]
        doubtful |= (left < 1) | (np.abs(left - np.floor(left) - 0.5) <= error * STEPS)
        if doubtful.any():
            again = np.zeros((int(doubtful.sum()), k))
            for i in range(dimensions):
                again += some[doubtful, i, None] * directions[i]
            found[doubtful] = _steps(again, norms[block][doubtful], step)
        out[:, :k], out[:, COORDINATES] = np.rint(found[:, :k]), np.rint(left)
    return rows


def _steps(coordinates: Floats, norms: Floats, step: float) -> Floats:
    """Coordinates (n, k) and the norm left out, (n, k + 1), in steps."""
    left = norms * norms
    for column in coordinates.T:
        left -= column * column
    return np.column_stack([coordinates / step, np.sqrt(np.maximum(left, 0.0)) / step])


def _centres(rows: Coordinates, n: int) -> Coordinates:
    """k-means: n centres, the first ones far from each other, spread as k-means++ would, without chance."""
    centres = np.zeros((n, rows.shape[1]), dtype=np.float32)
    columns = np.asfortranarray(rows)
    away = np.full(len(rows), np.float32(np.inf))
    chosen = 0
    for c in range(n):
        centres[c] = rows[chosen]
        np.minimum(away, _squares(columns, centres[c]), out=away)
        # The row where half and a bit of the squares are passed.
        target = np.cumsum(away, dtype=np.float64)[-1] * ((c * 0.6180339887498949 + 0.5) % 1.0)
        passed = np.subtract.accumulate(np.append(target, away.astype(np.float64)))[1:] < 0
        chosen = int(np.argmax(passed)) if passed.any() else chosen
    for _ in range(ROUNDS):
        cluster = _nearest_centre(rows, centres)
        counts = np.bincount(cluster, minlength=n)
        filled = counts > 0
        for j in range(rows.shape[1]):  # sums of whole numbers are exact in any order
            sums = np.bincount(cluster, weights=rows[:, j], minlength=n)
            centres[filled, j] = sums[filled] / counts[filled]
    return centres


def _nearest_centre(rows: Coordinates, centres: Coordinates) -> Ids:
    """The centre of the least square in float32 of each row; of equal ones the first."""
    cluster = np.empty(len(rows), dtype=np.int64)
    wide = centres.astype(np.float64)
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        squares = _exact_squares(some.astype(np.float64), wide)
        found = np.argmin(squares, axis=1)
        limit = squares[np.arange(len(some)), found] * (1 + SINGLE)
        limit += np.finfo(np.float64).eps * STEPS**2 * 2**12  # what the product's own rounding can be
        doubtful = np.flatnonzero(np.count_nonzero(squares <= limit[:, None], axis=1) > 1)
        if len(doubtful):
            row, centre = np.nonzero(squares[doubtful] <= limit[doubtful, None])
            again = _squares(some[doubtful[row]], centres[centre])
            first = np.lexsort((centre, again, row))
            first = first[np.unique(row[first], return_index=True)[1]]
            found[doubtful] = centre[first]
        cluster[start : start + BLOCK] = found
    return cluster
