"""Matrix product whose result does not depend on the number of threads or on shapes."""

from __future__ import annotations

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats

ROWS = 8  # rows of noise that are multiplied in one pass over the root matrix


@kernel()
def multiply(left: Floats, right: Floats, out: Floats) -> None:  # pragma: no cover - compiled
    """Add the matrix product ``left @ right`` to ``out``, with a fixed order of additions in each
    sum. The product of a linear algebra library would depend on threads and shapes.
    """
    for first in range(0, len(left), ROWS):
        last = min(first + ROWS, len(left))
        for inner in range(right.shape[0]):
            for row in range(first, last):
                factor = left[row, inner]
                for column in range(right.shape[1]):
                    out[row, column] += factor * right[inner, column]
