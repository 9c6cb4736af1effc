"""Exact rejection sampler over the sentences of a public sentence bank. It draws integers, and
leaves every decision that rounding could change to exact arithmetic.

Each sentence of the bank has an envelope, a whole number that bounds its weight from above. The
envelope follows from the distance of coordinates rounded to whole numbers; products of these are
exact in float32, for every processor and order of additions. A sentence is proposed with
probability proportional to its envelope, and accepted by its own weight, as in kernels/tem.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.compiled import kernel
from lexveil.base.types import Ids, Int32, Int64, Vectors
from lexveil.core.mechanisms.kernels.keystream import WORDS, open_stream
from lexveil.core.mechanisms.kernels.tem import ACCEPT, REFUSE, decide, least_mask, next_point
from lexveil.core.mechanisms.rejection import PENDING, UNDECIDED, Draws

NOWHERE = (0.0, np.inf)  # bounds that never decide, so that the distance is computed
Table = npt.NDArray[np.int64]


class Bank(NamedTuple):
    """Vectors of a sentence bank, or query vectors, with rounded copies.

    Attributes:
        vectors: (N, p).
        whole: (N, p) the vectors rounded to whole steps.
        squares: (N,) the squared lengths of the rounded vectors.
    """

    vectors: Vectors
    whole: Vectors
    squares: Int32


@kernel()
def add_envelopes(
    products: Vectors,
    of_queries: Int32,
    of_bank: Int32,
    tables: Table,
    table_of: Ids,
    shift: int,
    size: int,
    sums: Int64,
) -> None:  # pragma: no cover - compiled
    """Compute, for some queries, the sum of the envelopes over each block of ``size`` consecutive
    sentences. An envelope is an upper bound on the weight of a sentence.

    Args:
        products: (q, m) products of queries and sentences in whole steps.
        of_queries, of_bank: (q,) and (m,) squared lengths in whole steps.
        tables: (t, k) envelopes by the squared distance in units of 2^shift steps.
        table_of: (q,) the number of the table of each query.
        sums: (q, at least m / size) output: the sums.
    """
    for query in range(len(of_queries)):
        table = tables[table_of[query]]
        square = of_queries[query]
        for block in range((len(of_bank) + size - 1) // size):
            total = np.int64(0)
            for row in range(block * size, min((block + 1) * size, len(of_bank))):
                product = np.int32(2) * np.int32(products[query, row])
                total += table[np.int32(square + of_bank[row] - product) >> shift]  # below 2^26
            sums[query, block] = total


@kernel(fastmath={"reassoc", "contract"})
def whole_product(
    first: Vectors, left: int, second: Vectors, right: int
) -> np.float32:  # pragma: no cover - compiled
    """Return the inner product of two rows of whole numbers, one from each array. The result is
    exact in any order of additions.
    """
    total = np.float32(0.0)
    for i in range(first.shape[1]):
        total += first[left, i] * second[right, i]
    return total


@kernel(error_model="numpy")
def draw(
    bank: Bank,
    queries: Bank,
    sums: Int64,
    size: int,
    tables: Table,
    table_of: Ids,
    shift: int,
    draws: Draws,
    bits: int,
) -> Ids:  # pragma: no cover - compiled
    """Draw sentences of a sentence bank for query vectors by rejection sampling.

    Args:
        queries: the query vectors.
        sums: (q, blocks) sums of the envelopes of ``size`` consecutive sentences each.
        bits: the weight of distance 0 is 2 to this power.

    Returns:
        (n,) rows of the bank; UNDECIDED for a draw that rounding could change.
    """
    out = np.full(len(draws.inputs), PENDING)
    state = np.empty(16, dtype=np.uint32)
    stream = np.empty(WORDS, dtype=np.uint64)
    pair = np.empty((2, bank.vectors.shape[1]), dtype=np.float32)
    for number in range(len(out)):
        query = draws.inputs[number]
        table = table_of[query]
        square = queries.squares[query]
        half = draws.epsilon[number] / 2
        radius = draws.gamma[number]
        pair[0] = queries.vectors[query]
        total = np.int64(0)
        for block in range(sums.shape[1]):
            total += sums[query, block]
        mask = least_mask(total)
        open_stream(state, draws.keys, number, 0)
        at = WORDS
        attempt = -1
        while out[number] == PENDING:
            attempt += 1
            point, at = next_point(state, stream, at, total, mask)
            block = 0
            while point >= sums[query, block]:
                point -= sums[query, block]
                block += 1
            row = block * size - 1
            envelope = np.int64(0)
            while point >= envelope:
                point -= envelope
                row += 1
                product = whole_product(queries.whole, query, bank.whole, row)
                distance = square + bank.squares[row] - 2 * np.int64(product)
                envelope = tables[table, distance >> shift]
            if attempt < draws.refused[number]:
                continue
            pair[1] = bank.vectors[row]
            decision = decide(pair, (0, 1), half, radius, int(point), bits, NOWHERE)
            if decision != REFUSE:
                out[number] = row if decision == ACCEPT else UNDECIDED
                draws.doubts[number, 0] = row
                draws.doubts[number, 1] = point
                draws.doubts[number, 2] = attempt
    return out
