"""Amounts of epsilon as whole numbers, and which documents a cap withholds. Values in, values out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.errors import ParameterError
from lexveil.types import Flags

NANO = 10**9
MOST = 2**62  # nano-epsilon of one subject at most: 4.6e9 epsilon; two of them still add up in 64 bits

Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


def cap_nano(cap: float) -> int:
    """A cap in nano-epsilon, rounded down.

    Raises:
        ParameterError: if it is not a positive number below 1e9.
    """
    return int((_decimal(cap, "cap") * NANO).to_integral_value(ROUND_FLOOR))


def budget_nano(budget: float) -> int:
    """A document budget in nano-epsilon, rounded up.

    Raises:
        ParameterError: if it is not a positive number below 1e9.
    """
    return int((_decimal(budget, "budget") * NANO).to_integral_value(ROUND_CEILING))


def costs(epsilon: npt.NDArray[np.float64], budget: float) -> Ints:
    """What documents cost in nano-epsilon: ceil(ε · 1e9) of the exact product, and never more than ceil(B · 1e9).

    The rounding error of the float64 product is computed exactly (Dekker 1971, two-product), so that it never rounds
    an amount down. The budget is taken as the shortest decimal that names it: ten documents of 0.1 cost 1, not 1 and
    ten nano.

    Args:
        epsilon: (n,) that each document spends, finite and at least 0.
        budget: document budget B.

    Returns:
        (n,) whole numbers.

    Raises:
        ParameterError: if a document spends more than the budget.
    """
    most = budget_nano(budget)
    if len(epsilon) and epsilon.max() > budget:
        raise ParameterError(f"a document would spend {epsilon.max()!r} epsilon, more than its budget of {budget!r}")
    product = epsilon * float(NANO)
    head = epsilon * 134217729.0  # 2^27 + 1: splits 53 bits into two halves whose products are exact
    head -= head - epsilon
    # 1e9 = 2^9 · 5^9 has 21 significant bits and needs no splitting.
    error = (head * NANO - product) + (epsilon - head) * NANO
    whole = np.ceil(product)
    amounts = whole.astype(np.int64) + np.where(whole == product, np.ceil(error), 0.0).astype(np.int64)
    return np.minimum(amounts, most)


def _decimal(value: float, name: str) -> Decimal:
    if not (math.isfinite(value) and 0 < value < NANO):
        raise ParameterError(f"{name} is {value}; it must be greater than 0 and less than 1e9")
    return Decimal(repr(float(value)))


def distinct(keys: Keys) -> tuple[Keys, Ints]:
    """The distinct rows of ``keys`` (n, 2), shape (m, 2), in order, and of each row which one it is, shape (n,)."""
    if not len(keys):
        return keys, np.zeros(0, dtype=np.int64)
    high, low = keys[:, 0], keys[:, 1]
    # Half of a hash decides nearly always, and sorts ten times as fast.
    order = np.argsort(high, kind="stable")
    if np.any((high[order][1:] == high[order][:-1]) & (low[order][1:] != low[order][:-1])):
        order = np.lexsort((low, high))
    ordered = keys[order]
    first = np.ones(len(keys), dtype=bool)
    first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    index = np.empty(len(keys), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return ordered[first], index


def spend_bytes(subjects: Keys, nano: Ints) -> bytes:
    """What subjects pay, as the chain's digest has it: 16 bytes of hash and 8 of nano-epsilon each, big-endian."""
    packed = np.empty(len(subjects), dtype=[("subject", ">u8", 2), ("nano", ">i8")])
    packed["subject"], packed["nano"] = subjects, nano
    return packed.tobytes()


def spend_digest(rows: Iterable[tuple[Any, Any]]) -> str:
    """The chain's digest of what subjects pay: hash and nano-epsilon of each, in the order of hashes."""
    digest = hashlib.sha256()
    for subject, nano in rows:
        # What is no amount at all gets a digest that no amount has.
        digest.update(subject if isinstance(subject, bytes) else str(subject).encode())
        digest.update(nano.to_bytes(8, "big", signed=True) if isinstance(nano, int) else b"not a number")
    return digest.hexdigest()


def withhold(subject: Ints, cost: Ints, asked: Ints, room: Ints) -> tuple[Flags, Ints, Ints]:
    """Which documents go beyond what their subjects have left.

    A subject's documents are taken in order as long as all of them so far fit; what comes after the first that does not
    fit is withheld, if it is cheaper too. So what is withheld is an end of each subject's documents.

    Args:
        subject: (n,) in [0, m), of each document in order.
        cost: (n,) nano-epsilon, at least 0.
        asked: (m,) what subjects' documents before these would have cost, taken or not, at most ``MOST``.
        room: (m,) what subjects may spend in this release; below 0 if they have spent more than the cap.

    Returns:
        Whether each document is withheld (n,); what each subject pays for these documents (m,); ``asked`` after them.
    """
    paid, after = np.zeros(len(asked), dtype=np.int64), asked.copy()
    if not len(subject):
        return np.zeros(0, dtype=bool), paid, after
    order = np.argsort(subject, kind="stable")
    owner = subject[order]
    # Whole numbers of any size where 64 bits might not hold the sum.
    ordered = (cost if len(cost) * int(cost.max()) < MOST else cost.astype(object))[order]
    start = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    length = np.diff(np.r_[start, len(owner)])
    sums = np.cumsum(ordered)
    running = sums - np.repeat(sums[start] - ordered[start], length) + asked[owner]
    beyond = np.asarray(running > room[owner], dtype=bool)
    withheld = np.empty(len(owner), dtype=bool)
    withheld[order] = beyond
    paid[owner[start]] = np.add.reduceat(np.where(beyond, 0, ordered), start)
    after[owner[start]] = np.minimum(running[start + length - 1], MOST)
    return withheld, paid, after
