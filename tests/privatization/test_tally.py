"""Sums that do not depend on how what is summed was divided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lexveil.privatization.engine.counts import ExactSum, Tally

NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300), max_size=40)


@given(NUMBERS, st.integers(1, 5))
def test_a_sum_is_exact_in_whatever_parts_it_comes(numbers: list[float], n_parts: int) -> None:
    """Against math.fsum, which rounds once; subnormal numbers and cancellation among them."""
    whole, parts = ExactSum(), ExactSum()
    whole.add(np.array(numbers, dtype=np.float64))
    for part in np.array_split(np.array(numbers, dtype=np.float64)[::-1], n_parts):
        of_part = ExactSum()
        of_part.add(part)
        parts += of_part
    assert float(whole) == float(parts) == math.fsum(numbers)


def test_many_equal_numbers_do_not_overflow() -> None:
    total = ExactSum()
    total.add(np.full(100_000, 1 - 2.0**-53))
    assert float(total) == 100_000 * (1 - 2.0**-53)


def test_shares_of_documents() -> None:
    """By hand: of 20 documents 17 keep nothing, one a third, one nearly all, one all."""
    tally = Tally()
    assert tally.document_shares() is None
    for percent, n in ((0, 17), (34, 1), (95, 1), (100, 1)):
        tally.by_percent[percent] += n
    shares: Any = tally.document_shares()
    assert (shares.documents, shares.median_unchanged, shares.worst_tenth_unchanged) == (20, 0.0, 0.34)
    assert shares.nearly_verbatim == 2 and shares.caution is None
