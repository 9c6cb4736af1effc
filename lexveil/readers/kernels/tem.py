"""Compiled decoding of TEM (the truncated exponential mechanism): the function finds the most
probable source words of output words.
"""

from __future__ import annotations

import math

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.embeddings.kernels.search import squared_distance
from lexveil.readers.adversary import Block, Candidates, Interpolation, TemChannel
from lexveil.readers.kernels.insert import insert

CHUNK = 512  # scores that are skipped together if their largest is too small


@kernel(nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def decode(
    channel: TemChannel,
    products: Vectors,
    block: Block,
    interpolation: Interpolation,
    candidates: Candidates,
) -> None:  # pragma: no cover - compiled
    """Find the k most probable source words of the output words of a block, by their scores.

    A float32 product bounds each score from above. Words that could be among the k best are scored
    in float64.

    Args:
        products: (m, V) inner products of the outputs with all words.
        candidates: (n, k) output, most probable first; the ids must be -1 at the call.
    """
    squares = channel.squares
    screen = channel.screen
    limit = channel.limit
    n_words = len(squares)
    k = candidates.ids.shape[1]
    nearest = np.empty(n_words, np.float32)
    upper = np.empty(n_words, np.float32)
    top = np.float32(limit)
    for row in range(len(block.outputs)):
        output = block.outputs[row]
        own = squares[output] - channel.slack[output]
        for word in range(n_words):
            square = own + squares[word] - np.float32(2) * products[row, word]
            nearest[word] = math.sqrt(square if square > 0 else np.float32(0))
        for place in range(block.starts[row], block.starts[row + 1]):
            token = block.tokens[place]
            ids = candidates.ids[token]
            scores = candidates.log_joint[token]
            weights = interpolation.weights[token]
            epsilon = interpolation.epsilon[token]
            half = np.float32(epsilon / 2)
            rung = interpolation.first[token]
            # A bound on the float32 error of the terms, none of which is above a few hundred.
            error = np.float32(1e-4)
            weight = np.float32(weights[0])
            for word in range(n_words):
                loss = half * nearest[word]
                upper[word] = error + weight * screen[rung, word] - (loss if loss < top else top)
            for step in range(1, len(weights)):
                weight = np.float32(weights[step])
                if weight != 0:
                    for word in range(n_words):
                        upper[word] += weight * screen[rung + step, word]
            _keep(channel, output, output, epsilon, rung, weights, ids, scores)
            for chunk in range(0, n_words, CHUNK):
                end = min(chunk + CHUNK, n_words)
                largest = upper[chunk]
                for word in range(chunk, end):
                    largest = largest if largest > upper[word] else upper[word]
                if largest < scores[k - 1]:
                    continue
                for word in range(chunk, end):
                    if upper[word] >= scores[k - 1] and word != output:
                        _keep(channel, output, word, epsilon, rung, weights, ids, scores)


@kernel(nogil=True)
def _keep(
    channel: TemChannel,
    output: int,
    word: int,
    epsilon: float,
    rung: int,
    weights: Floats,
    ids: Ids,
    scores: Floats,
) -> None:  # pragma: no cover - compiled
    """Compute a word's score in float64, and insert the word into the list of the best words; on a
    tie, the lowest word number wins.
    """
    distance = math.sqrt(squared_distance(channel.vectors, output, channel.vectors, word))
    score = -min(epsilon * distance / 2, channel.limit)
    for step in range(len(weights)):
        score += weights[step] * channel.bias[rung + step, word]
    insert(word, score, ids, scores)
