"""Bounds of a sketch, and how its memory is asked for."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lexveil.embeddings.sketch_form import COORDINATES, SLACK, Coordinates
from lexveil.types import Ids, Steps

BLOCK = 512  # words measured at a time, whose sketches stay in the cache


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


@numba.njit(cache=True, fastmath=False)  # said, because numba would take it over from who calls it first
def _square(one: Coordinates, other: Coordinates) -> np.float32:  # pragma: no cover - compiled
    total = np.float32(0.0)
    for i in range(len(one)):
        total += (one[i] - other[i]) * (one[i] - other[i])
    return total


@numba.njit(cache=True, fastmath={"contract"})
def measure(
    rows: Steps,
    centres: Coordinates,
    radii: Coordinates,
    ends: Ids,
    wide: int,
    place: npt.NDArray[np.int32],
    step: float,
    words: Ids,
    nearest: Coordinates,
) -> None:  # pragma: no cover - compiled
    """Of each word a lower bound for every cluster: the least of its words, or by its centre and radius."""
    columns, part = np.empty((rows.shape[1], BLOCK), dtype=np.float32), np.empty(BLOCK, dtype=np.float32)
    for word in words:
        nearest[word] = np.inf
    # Some columns at a time, which stay in the cache for all words.
    for start in range(0, wide, BLOCK):
        end = min(start + BLOCK, wide)
        first = int(np.searchsorted(ends, start, side="right")) - 1
        for k in range(rows.shape[1]):
            for i in range(end - start):
                columns[k, i] = np.float32(rows[start + i, k])
        for word in words:
            own = place[word]
            part[:] = np.float32(0.0)
            for k in range(len(columns)):
                value, column = np.float32(rows[own, k]), columns[k, : end - start]
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
