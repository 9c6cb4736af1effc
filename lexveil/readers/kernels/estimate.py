"""Compiled decoding with an estimated output distribution: the function finds the most probable
source words of output words.
"""

from __future__ import annotations

import math

import numpy as np

from lexveil.base.compiled import kernel
from lexveil.base.types import Vectors
from lexveil.readers.adversary import Block, Candidates, EstimatedChannel, Interpolation
from lexveil.readers.kernels.insert import insert

STEPS = 1024  # number of distances in the table of the terms that depend only on the distance
CHUNK = 512  # scores that are skipped together if their largest is too small


@kernel(nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def decode(
    channel: EstimatedChannel,
    products: Vectors,
    block: Block,
    interpolation: Interpolation,
    candidates: Candidates,
) -> None:  # pragma: no cover - compiled
    """Find the k most probable source words of the output words of a block. Values at the grid
    epsilons of the ladder are interpolated for each token.

    Terms that depend only on the distance of a word come from a table of ``STEPS`` distances.

    Args:
        products: (m, V) inner products of the outputs with all words.
        candidates: (n, k) output, most probable first; the ids must be -1 at the call.
    """
    squares = channel.squares
    others = channel.others
    near = channel.near
    slopes = channel.slopes
    closest = channel.closest
    farthest = channel.farthest
    weights = interpolation.weights
    step = farthest / STEPS
    n_words = len(squares)
    n_rungs = weights.shape[1]
    k = candidates.ids.shape[1]
    n_steps = int(farthest / step) + 2
    below = np.empty(n_words, np.int32)
    part = np.empty(n_words, np.float32)
    inverse = np.empty(n_words, np.float32)
    score = np.empty(n_words, np.float32)
    table = np.empty(n_steps, np.float32)
    slope = np.empty(slopes.shape[1])
    per_step = np.float32(1 / step)
    one = np.float32(1)
    low = np.float32(closest)
    high = np.float32(farthest)
    for row in range(len(block.outputs)):
        output = block.outputs[row]
        for word in range(n_words):
            square = squares[output] + squares[word] - np.float32(2) * products[row, word]
            root = np.float32(math.sqrt(square if square > 0 else np.float32(0)))
            distance = min(max(root, low), high)
            place = distance * per_step
            whole = np.floor(place)
            below[word] = np.int32(whole)
            part[word] = place - whole
            inverse[word] = one / distance
        for at in range(block.starts[row], block.starts[row + 1]):
            token = block.tokens[at]
            ids = candidates.ids[token]
            scores = candidates.log_joint[token]
            rung = interpolation.first[token]
            of_own = 0.0
            score[:] = 0
            slope[:] = 0
            for level in range(n_rungs):
                weight = np.float32(weights[token, level])
                of_own += weights[token, level] * channel.own[rung + level, output]
                for feature in range(len(slope)):
                    slope[feature] += weights[token, level] * slopes[rung + level, feature]
                for word in range(n_words):
                    score[word] += weight * others[rung + level, word]
            for number in range(n_steps):
                d = max(number * step, closest / 2)
                value = slope[0] * d + slope[1] * d * d + slope[2] * math.log(d)
                for rank in range(2):
                    share = min(near[rank, output] / d, 1.0)
                    value += slope[7 + 2 * rank] * share + slope[8 + 2 * rank] * share**4
                table[number] = value
            s3 = np.float32(slope[3])
            s4 = np.float32(slope[4])
            s5 = np.float32(slope[5])
            s6 = np.float32(slope[6])
            for word in range(n_words):
                first_share = near[0, word] * inverse[word]
                far_share = near[1, word] * inverse[word]
                first_share = min(first_share, one)
                far_share = min(far_share, one)
                fourth = first_share * first_share
                far_fourth = far_share * far_share
                fourth = fourth * fourth
                far_fourth = far_fourth * far_fourth
                score[word] += s3 * first_share + s4 * fourth + s5 * far_share + s6 * far_fourth
            for word in range(n_words):
                value32 = table[below[word]]
                score[word] += value32 + part[word] * (table[below[word] + 1] - value32)
            insert(output, of_own, ids, scores)
            for chunk in range(0, n_words, CHUNK):
                end = min(chunk + CHUNK, n_words)
                largest = score[chunk]
                for word in range(chunk, end):
                    largest = largest if largest > score[word] else score[word]
                if largest < scores[k - 1]:
                    continue
                for word in range(chunk, end):
                    if score[word] >= scores[k - 1] and word != output:
                        insert(word, score[word], ids, scores)
