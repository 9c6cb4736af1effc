"""Amounts of epsilon as whole numbers of nano-epsilon, rounded so that no subject is ever charged
too little.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import numpy.typing as npt

from lexveil.base.errors import ParameterError

NANO = 10**9
# largest balance in nano-epsilon (4.6e9 epsilon): the sum of two of them still fits in 64 bits
MOST = 2**62

Ints = npt.NDArray[np.int64]


def cap_nano(cap: float) -> int:
    """Convert a subject's budget cap to nano-epsilon, rounded down.

    Raises:
        ParameterError: if the cap is not a positive number below 1e9.
    """
    return int((_decimal(cap, "cap") * NANO).to_integral_value(ROUND_FLOOR))


def budget_nano(budget: float) -> int:
    """Convert a document budget to nano-epsilon, rounded up.

    Raises:
        ParameterError: if the budget is not a positive number below 1e9.
    """
    return int((_decimal(budget, "budget") * NANO).to_integral_value(ROUND_CEILING))


def nano_epsilon(epsilon: npt.NDArray[np.float64]) -> Ints:
    """Convert epsilons to whole nano-epsilon, ceil(ε · 1e9) of the exact product, shape (n,), for ε
    of at least 0. An ε above 2e9 counts as 2e9.

    The rounding error of the float64 product is computed exactly (Dekker 1971, two-product), so
    that no amount is ever rounded down.
    """
    # larger than every budget, so that the products below stay finite
    epsilon = np.minimum(epsilon, 2.0 * NANO)
    product = epsilon * float(NANO)
    # 2^27 + 1, which splits 53 bits into two halves with exact products
    head = epsilon * 134217729.0
    head -= head - epsilon
    # 1e9 = 2^9 · 5^9 has 21 significant bits and needs no splitting.
    error = (head * NANO - product) + (epsilon - head) * NANO
    whole = np.ceil(product)
    return whole.astype(np.int64) + np.where(whole == product, np.ceil(error), 0.0).astype(np.int64)


def costs(epsilon: npt.NDArray[np.float64], budget: float) -> Ints:
    """Return the costs of documents in nano-epsilon: ceil(ε · 1e9), and never more than ceil(B ·
    1e9).

    The budget is read as its shortest decimal notation. Ten documents with a budget of 0.1
    therefore cost exactly 1 epsilon, although the float64 number 0.1 is slightly above a tenth.

    Args:
        epsilon: (n,) epsilon that each document spends, finite and at least 0.
        budget: document budget B.

    Returns:
        (n,) whole numbers.

    Raises:
        ParameterError: if a document spends more than the budget.
    """
    most = budget_nano(budget)
    if len(epsilon) and epsilon.max() > budget:
        raise ParameterError(
            f"a document would spend {epsilon.max()!r} epsilon, more than its budget of {budget!r}"
        )
    return np.minimum(nano_epsilon(epsilon), most)


def _decimal(value: float, name: str) -> Decimal:
    if not (math.isfinite(value) and 0 < value < NANO):
        raise ParameterError(f"{name} is {value}; it must be greater than 0 and less than 1e9")
    return Decimal(repr(float(value)))
