"""Compiled bounds on distances, computed from a sketch (a few coordinates of each word), and the
prefetch of the sketch's memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from lexveil.base.compiled import kernel
from lexveil.base.types import Steps
from lexveil.core.embeddings.sketch import COORDINATES, SLACK


@intrinsic
def prefetch(_context: Any, rows: Any, row: Any) -> Any:  # pragma: no cover - compiled
    """Prefetch a row of a two-dimensional array into the processor's cache, without waiting for
    it.
    """

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
        # Read access (0), keep in all caches (3), data (1).
        builder.call(
            function, [builder.bitcast(place, cgutils.voidptr_t), *map(integer, (0, 3, 1))]
        )
        return context.get_dummy_value()

    return types.void(rows, row), generate


@kernel(fastmath={"reassoc", "contract"})
def sketch_bounds(
    rows: Steps, step: float, first: int, second: int
) -> tuple[float, float]:  # pragma: no cover
    """Return a lower and an upper bound on the distance between two words, given their row numbers
    in the sketch. The last digits may differ by machine.
    """
    square = np.float32(0.0)
    # with a constant length, the compiler would unroll the loop, but not vectorize it
    for i in range(rows.shape[1]):
        difference = np.float32(np.int32(rows[first, i]) - np.int32(rows[second, i]))
        square += difference * difference
    # (a + b)² = (a - b)² + 4 a b for the norms of the omitted parts.
    both = 4.0 * rows[first, COORDINATES] * rows[second, COORDINATES]
    return step * (math.sqrt(square) - SLACK), step * (math.sqrt(square + both) + SLACK)
