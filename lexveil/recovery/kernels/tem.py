"""The likeliest words behind outputs of TEM."""

from __future__ import annotations

import math

import numba
import numpy as np

from lexveil.embeddings.kernels.search import squared_distance_of_rows
from lexveil.recovery.kernels.insert import insert
from lexveil.types import Floats, Ids, Rows, Vectors

CHUNK = 512  # scores whose largest is compared before each of them is


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
