"""Sums of TEM's weights over all pairs of words, and the likeliest words behind outputs."""

from __future__ import annotations

import math

import numba
import numpy as np

from lexveil.embeddings.kernels.search import squared_distance_of_rows
from lexveil.recovery.kernels.insert import insert
from lexveil.types import Floats, Ids, Rows, Vectors

CLOSE = 1e-3  # of the squared lengths: nearer words are measured in float64, as float32 products cancel
ROWS = 64  # whose weights are added in float32: more would lose small ones beside a large one
CHUNK = 512  # scores whose largest is compared before each of them is
# 2^f on (0, 1] by minimax of the relative error, which is below 8e-8.
TWO_TO = (0.999999925064, 0.693153073195, 0.24015361709, 0.0558263179175, 0.00898934025223, 0.00187757660837)


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def add_weights(
    vectors: Vectors,
    products: Vectors,
    squares: Vectors,
    left: int,
    right: int,
    rates: Vectors,
    floor: float,
    sums: Floats,
) -> None:  # pragma: no cover - compiled
    """Add 2^-min(rate·d, floor) of a block of pairs to the sums of its rows and, off the diagonal, of its columns.

    Args:
        products: (n, m) inner products of words left, left + 1, … and right, right + 1, …
        squares: (V,) squared lengths.
        rates, floor: ε/2 (L,) and ε·γ/2, in units of ln 2; the floor below 100.
        sums: (L, V) added to.
    """
    n, m = products.shape
    distances, bits = np.empty(m, np.float32), np.empty(m, np.int32)
    powers, fractions = bits.view(np.float32), np.empty(m, np.float32)
    columns = np.zeros((len(rates), m), dtype=np.float32)
    lowest, two = np.float32(-floor), np.float32(2)
    c0, c1, c2 = np.float32(TWO_TO[0]), np.float32(TWO_TO[1]), np.float32(TWO_TO[2])
    c3, c4, c5 = np.float32(TWO_TO[3]), np.float32(TWO_TO[4]), np.float32(TWO_TO[5])
    for i in range(n):
        own, closest = squares[left + i], np.float32(1)
        for j in range(m):
            size = own + squares[right + j]
            square = size - two * products[i, j]
            excess = square - np.float32(CLOSE) * size
            closest = closest if closest < excess else excess
            distances[j] = math.sqrt(square if square > 0 else np.float32(0))
        if closest <= 0:
            for j in range(m):
                size = own + squares[right + j]
                if size - two * products[i, j] <= np.float32(CLOSE) * size:
                    distances[j] = math.sqrt(squared_distance_of_rows(vectors, left + i, right + j))
        for level in range(len(rates)):
            rate = -rates[level]
            for j in range(m):
                exponent = rate * distances[j]
                exponent = exponent if exponent > lowest else lowest
                whole = np.ceil(exponent) - np.float32(1)
                # The bits of 2^whole: an exponent and no mantissa. In floats, which is done for many at once.
                bits[j] = np.int32((whole + np.float32(127)) * np.float32(2**23))
                fractions[j] = exponent - whole
            total = np.float32(0)
            for j in range(m):
                f = fractions[j]
                value = powers[j] * (c0 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * c5)))))
                total += value
                columns[level, j] += value
            sums[level, left + i] += total
        if left != right and (i % ROWS == ROWS - 1 or i == n - 1):
            for level in range(len(rates)):
                for j in range(m):
                    sums[level, right + j] += columns[level, j]
                    columns[level, j] = 0


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def decode(
    vectors: Vectors,
    products: Vectors,
    squares: Vectors,
    slack: Vectors,
    outputs: Ids,
    starts: Rows,
    tokens: Rows,
    epsilon: Floats,
    limit: float,
    bias: Floats,
    screen: Vectors,
    first: Ids,
    weights: Floats,
    ids: Ids,
    scores: Floats,
) -> None:  # pragma: no cover - compiled
    """The k likeliest words behind the outputs of a block, by score: bias - min(ε·d/2, limit).

    A float32 product bounds each score from above; words that could be among the k are scored in float64.

    Args:
        products: (n, V) inner products of the outputs with all words.
        squares, slack: (V,) squared lengths, and (n,) how wrong a squared distance can be.
        outputs: (n,) different words.
        starts, tokens: (n + 1,) where each output's tokens begin in ``tokens``.
        epsilon: of each token.
        limit: ε·γ/2.
        bias, screen: (L, V) in float64, and in float32, ln π - ln Z at each rung.
        first, weights: the rung from which, and the (…, K) weights with which, each token's bias is interpolated.
        ids, scores: (…, k) written, likeliest first; ids are -1 before.
    """
    n_words, k = len(squares), ids.shape[1]
    nearest, upper = np.empty(n_words, np.float32), np.empty(n_words, np.float32)
    top = np.float32(limit)
    for row in range(len(outputs)):
        own = squares[outputs[row]] - slack[row]
        for word in range(n_words):
            square = own + squares[word] - np.float32(2) * products[row, word]
            nearest[word] = math.sqrt(square if square > 0 else np.float32(0))
        for place in range(starts[row], starts[row + 1]):
            token = tokens[place]
            half = np.float32(epsilon[token] / 2)
            rung, n_rungs = first[token], weights.shape[1]
            # A little more than float32 can lose of the terms, none of which is above a few hundred.
            error = np.float32(1e-4)
            weight = np.float32(weights[token, 0])
            for word in range(n_words):
                loss = half * nearest[word]
                upper[word] = error + weight * screen[rung, word] - (loss if loss < top else top)
            for step in range(1, n_rungs):
                weight = np.float32(weights[token, step])
                if weight != 0:
                    for word in range(n_words):
                        upper[word] += weight * screen[rung + step, word]
            _keep(vectors, outputs[row], outputs[row], epsilon[token], limit, bias, rung, weights[token], ids[token],
                  scores[token])  # fmt: skip
            for chunk in range(0, n_words, CHUNK):
                end = min(chunk + CHUNK, n_words)
                largest = upper[chunk]
                for word in range(chunk, end):
                    largest = largest if largest > upper[word] else upper[word]
                if largest < scores[token, k - 1]:
                    continue
                for word in range(chunk, end):
                    if upper[word] >= scores[token, k - 1] and word != outputs[row]:
                        _keep(vectors, outputs[row], word, epsilon[token], limit, bias, rung, weights[token],
                              ids[token], scores[token])  # fmt: skip


@numba.njit(cache=True, nogil=True)
def _keep(
    vectors: Vectors,
    output: int,
    word: int,
    epsilon: float,
    limit: float,
    bias: Floats,
    rung: int,
    weights: Floats,
    ids: Ids,
    scores: Floats,
) -> None:  # pragma: no cover - compiled
    """Score a word in float64, and insert it where it belongs; of equal scores the lowest word comes first."""
    distance = math.sqrt(squared_distance_of_rows(vectors, output, word))
    score = -min(epsilon * distance / 2, limit)
    for step in range(len(weights)):
        score += weights[step] * bias[rung + step, word]
    insert(word, score, ids, scores)
