"""The reader of TEM's outputs, by the closed form: exact Bayes over the whole vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexveil.mechanisms.tem import Tem
from lexveil.recovery.adversary import Candidates, by_output
from lexveil.recovery.ladder import Ladder
from lexveil.types import Floats, Ids, Vectors

RATIO = 2**0.25  # of two rungs at most
SMALL = 2048  # words up to which all distances are float64
BLOCK = 1024  # words on each side of a block of distances
SEED = 20261  # public, so that everybody finds the same reader
SUMMED = 512  # words by which a quick reader estimates a sum over the vocabulary
ROWS = 4096  # words whose distances to those are held at a time
LN2 = float(np.log(2))


class TemAdversary:
    """Guesses the w that maximises ln π(w) - ε·min(d(w,y), γ)/2 - ln Z(w, ε).

    Z(w, ε) = Σ_u exp(-ε·min(d(w,u), γ)/2) is summed over the whole vocabulary, in one pass over all pairs for all rungs
    of a ladder of ε; between rungs ln Z is interpolated in ln ε (docs/explanation/recovery.md has the error). At the
    rungs it has the error of distances in float32, about 1e-6; with at most ``SMALL`` words that of float64.
    Guesses are decided by scores in float64, so equal ones go to the first word. A ``quick`` reader of more words than
    that estimates Z from ``SUMMED`` of them.

    Attributes:
        ladder: the epsilons at which ln Z is known.
        bias: (L, V) ln π - ln Z at each of them.
    """

    def __init__(
        self,
        mechanism: Tem,
        prior: Floats,
        epsilon_range: tuple[float, float],
        at: Sequence[float] = (),
        *,
        quick: bool = False,
    ) -> None:
        self.vectors = mechanism.vectors
        self.limit = float(mechanism.gamma(np.array([2.0]))[0])  # ε·γ/2 is the same for all ε
        self.ladder = Ladder(epsilon_range, RATIO, at)
        sums = estimated_log_normalizers if quick and mechanism.size > SMALL else log_normalizers
        log_z = sums(mechanism, self.ladder.rungs)
        self.bias: Floats = np.log(prior) - log_z
        self._screen = self.bias.astype(np.float32)
        squares = np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64)
        self._squares = squares.astype(np.float32)
        longest = float(np.sqrt(squares.max(initial=0.0)))
        # As in the exact search: (p + 8) rounding steps of each product and square.
        slack = 2.01 * (self.vectors.shape[1] + 8) * 2.0**-24 * (np.sqrt(squares) * longest + longest**2)
        self._slack = (2 * slack).astype(np.float32)

    def guess(self, outputs: Ids, epsilon: Floats) -> Ids:
        """See ``Adversary``."""
        return self.candidates(outputs, epsilon, 1).ids[:, 0]

    def candidates(self, outputs: Ids, epsilon: Floats, k: int) -> Candidates:
        """See ``Adversary``.

        Raises:
            ParameterError: if an epsilon lies outside of the ladder.
        """
        from lexveil.recovery.kernels.tem import decode

        k = min(k, len(self.vectors))
        found = Candidates.unknown(len(outputs), k)
        first, weights = self.ladder.weights(epsilon)
        for some, starts, tokens in by_output(outputs):
            decode(
                self.vectors,
                self.vectors[some] @ self.vectors.T,
                self._squares,
                self._slack[some],
                some,
                starts,
                tokens,
                epsilon,
                self.limit,
                self.bias,
                self._screen,
                first,
                weights,
                *found,
            )
        return found


def log_normalizers(mechanism: Tem, epsilon: Floats) -> Floats:
    """The ln Σ_u exp(-ε·min(d(w,u), γ)/2) of every word w at L epsilons, (L, V), in one pass over all pairs."""
    vectors, n = mechanism.vectors, mechanism.size
    sums = np.zeros((len(epsilon), n))
    limit = float(mechanism.gamma(np.array([2.0]))[0])
    if n <= SMALL:
        from lexveil.embeddings.exact_search import distance_rows

        for word in range(n):
            distances = distance_rows(vectors, np.array([word]))[0]
            sums[:, word] = np.exp(-np.minimum(epsilon[:, None] / 2 * distances, limit)).sum(axis=1)
        return np.log(sums)
    from lexveil.recovery.kernels.tem import add_weights

    squares = np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64).astype(np.float32)
    rates = (epsilon / 2 / LN2).astype(np.float32)
    products: Vectors = np.empty((BLOCK, BLOCK), dtype=np.float32)
    for left in range(0, n, BLOCK):
        for right in range(left, n, BLOCK):  # a pair counts for both of its words
            first, second = vectors[left : left + BLOCK], vectors[right : right + BLOCK]
            here = np.matmul(first, second.T, out=products[: len(first), : len(second)])
            add_weights(vectors, here, squares, left, right, rates, limit / LN2, sums)
    return np.log(sums)


def estimated_log_normalizers(mechanism: Tem, epsilon: Floats) -> Floats:
    """About the same: the word itself, and the mean over ``SUMMED`` other words times how many there are; (L, V).

    Right to about 0.05, for a few hundredths of the work. Where single near words make up much of a sum their own
    scores differ by far more than that, so hardly a guess changes.
    """
    vectors, n = mechanism.vectors, mechanism.size
    limit = np.float32(mechanism.gamma(np.array([2.0]))[0])
    squares = np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64).astype(np.float32)
    some = np.sort(np.random.default_rng(SEED).choice(n, SUMMED, replace=False))
    sums = np.empty((len(epsilon), n))
    for start in range(0, n, ROWS):
        words = np.arange(start, min(start + ROWS, n))
        products = vectors[words] @ vectors[some].T
        distances = np.sqrt(np.maximum(squares[words, None] + squares[some] - 2 * products, 0))
        is_own = words[:, None] == some
        others = SUMMED - is_own.sum(axis=1)
        for level, rate in enumerate((epsilon / 2).astype(np.float32)):
            weights = np.exp(-np.minimum(rate * distances, limit))
            weights[is_own] = 0
            sums[level, words] = 1 + (n - 1) * weights.sum(axis=1, dtype=np.float64) / others
    return np.log(sums)
