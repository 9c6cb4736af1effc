"""Sketch of an embedding: bounds on distances with little memory, from a few coordinates of every
word and the norm of all other coordinates.

The bounds only speed up decisions and never contradict the distance, so they may differ in their
last digits from one processor to another.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Floats, Steps, Vectors

COORDINATES = 31  # with the norm, one cache line per word
STEPS_OF_A_COORDINATE = 32767  # largest absolute value of a coordinate, in steps
# steps; more than the rounding error of 32 coordinates of two words (half a step each) and of the
# float32 sum
SLACK = 7.0
MOMENT_WORDS = 2048  # words from which the directions of most variance are computed
WORDS_AT_A_TIME = 4096  # words projected per block


class Sketch:
    """Sketch of all words: a few coordinates of each vector, from which bounds on the distances
    between words are computed.

    The sketch of a word consists of its coordinates along the directions in which the words differ
    most, and the norm of the remaining vector. Each bound on the distance of two words combines the
    distance of these coordinates with the two norms: the lower bound uses the difference of the
    norms, the upper bound their sum. Any orthonormal directions give valid bounds.

    Attributes:
        rows: (V, 32) int16, in steps; the last column is the norm of the remaining vector.
        step: size of a step, in embedding units.
    """

    def __init__(self, vectors: Vectors, norms: Floats) -> None:
        n_words, dimensions = vectors.shape
        self.step = (norms.max(initial=0.0) or 1.0) / STEPS_OF_A_COORDINATE
        k = min(COORDINATES, dimensions)
        some = vectors[:: max(1, n_words // MOMENT_WORDS)] / self.step
        directions = np.linalg.eigh(some.T @ some)[1][:, -k:]
        self.rows: Steps = np.zeros((n_words, COORDINATES + 1), dtype=np.int16)
        for start in range(0, n_words, WORDS_AT_A_TIME):
            block = slice(start, start + WORDS_AT_A_TIME)
            coordinates = (vectors[block] / self.step) @ directions
            left = (norms[block] / self.step) ** 2 - np.einsum("vk,vk->v", coordinates, coordinates)
            self.rows[block, :k] = np.rint(coordinates)
            self.rows[block, COORDINATES] = np.rint(np.sqrt(np.maximum(left, 0.0)))
