"""Compiled computation of distances in float64, and selection of the nearest among the candidates
of a float32 product.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Rows, Vectors


@kernel(fastmath={"reassoc", "contract"})
def squared_distance(
    first: Vectors, left: int, second: Vectors | Floats, right: int
) -> float:  # pragma: no cover - compiled
    """Return the squared Euclidean distance |u - v|² of two rows in float64; exactly 0 for equal
    rows. The compiler may change the order of additions, and nothing else.

    Rows are given by index: passing a row as an array would cost more than the distance, since
    numba counts references to arrays.
    """
    total = 0.0
    for i in range(first.shape[1]):
        difference = np.float64(first[left, i]) - np.float64(second[right, i])
        total += difference * difference
    return total


@kernel()
def insert(
    row: int, square: float, ids: Rows, squares: Floats
) -> None:  # pragma: no cover - compiled
    """Insert a row into a query's list of nearest rows, which is sorted by distance and then by
    row number.
    """
    place = len(ids) - 1
    if square > squares[place] or (square == squares[place] and row > ids[place]):
        return
    while place > 0 and (
        square < squares[place - 1] or (square == squares[place - 1] and row < ids[place - 1])
    ):
        squares[place], ids[place] = squares[place - 1], ids[place - 1]
        place -= 1
    squares[place] = square
    ids[place] = row


@kernel()
def measure_groups(
    vectors: Vectors, queries: Floats, groups: Rows, of: Rows, size: int, ids: Rows, squares: Floats
) -> None:  # pragma: no cover - compiled
    """Compute the distances from each query to the words of its candidate groups, and keep the k
    nearest.
    """
    for pair in range(len(groups)):
        query = of[pair]
        for row in range(groups[pair] * size, min((groups[pair] + 1) * size, len(vectors))):
            insert(row, squared_distance(vectors, row, queries, query), ids[query], squares[query])


@kernel()
def measure_pairs(
    first: Vectors, second: Vectors | Floats, left: Rows, right: Rows
) -> Floats:  # pragma: no cover - compiled
    """Return the squared Euclidean distances |u - v|² between rows ``left`` of the first vectors
    and rows ``right`` of the second.
    """
    squares = np.empty(len(left))
    for i in range(len(left)):
        squares[i] = squared_distance(first, left[i], second, right[i])
    return squares


@kernel(fastmath={"reassoc", "contract"})
def multiply_pairs(
    vectors: Vectors, left: Rows, right: Rows
) -> Floats:  # pragma: no cover - compiled
    """Return the inner products <u, v> of pairs of rows, in float64. Rows are not copied, because
    copies would take most of the time.
    """
    products = np.empty(len(left))
    for i in range(len(left)):
        total = 0.0
        for j in range(vectors.shape[1]):
            total += np.float64(vectors[left[i], j]) * np.float64(vectors[right[i], j])
        products[i] = total
    return products
