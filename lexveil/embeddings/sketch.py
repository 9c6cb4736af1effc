"""Bounds of distances from little memory: a few coordinates of every word, and how much of it they
leave out.

They say quickly what the distance itself would say, and never decide otherwise, so they may differ
in their last digits from one processor to another.
"""

from __future__ import annotations

import numpy as np

from lexveil.types import Floats, Steps, Vectors

COORDINATES = 31  # with the part left out, one line of cache per word
STEPS = 32767  # of a coordinate on either side of 0
# Of them, more than what rounding does to 32 coordinates of two words (half a step each), and
# float32 to the sum.
SLACK = 7.0
MOMENT_WORDS = 2048  # for the directions of most variance
BLOCK = 4096  # words projected at a time


class Sketch:
    """All words by a few coordinates, with bounds of the distances between them.

    A sketch of a word is its coordinates along the directions in which the words differ most, and
    the norm of all that these leave out. The distance of two words lies between that of their
    coordinates with the difference, and that with the sum, of the norms left out; any orthonormal
    directions do.

    Attributes:
        rows: (V, 32) int16, the norm left out last, in steps.
        step: of a coordinate, in embedding units.
    """

    def __init__(self, vectors: Vectors, norms: Floats) -> None:
        n_words, dimensions = vectors.shape
        self.step = (norms.max(initial=0.0) or 1.0) / STEPS
        k = min(COORDINATES, dimensions)
        some = vectors[:: max(1, n_words // MOMENT_WORDS)] / self.step
        directions = np.linalg.eigh(some.T @ some)[1][:, -k:]
        self.rows: Steps = np.zeros((n_words, COORDINATES + 1), dtype=np.int16)
        for start in range(0, n_words, BLOCK):
            block = slice(start, start + BLOCK)
            coordinates = (vectors[block] / self.step) @ directions
            left = (norms[block] / self.step) ** 2 - np.einsum("vk,vk->v", coordinates, coordinates)
            self.rows[block, :k] = np.rint(coordinates)
            self.rows[block, COORDINATES] = np.rint(np.sqrt(np.maximum(left, 0.0)))
