"""Unigram adversary of TEM (the truncated exponential mechanism). It uses the closed form of the
output distribution.
"""

from __future__ import annotations

import numpy as np

from lexveil.base.types import Floats, Ids, Vectors
from lexveil.core.mechanisms.tem import Tem
from lexveil.readers.adversary import (
    Block,
    Candidates,
    Interpolation,
    Ladder,
    LadderAdversary,
    TemChannel,
)

RATIO = 2**0.25  # largest ratio of neighbouring epsilons of the ladder
SMALL_VOCABULARY = 2048  # for vocabularies up to this size, sums run over all words
PUBLIC_SEED = 20261  # public seed, so that everybody builds the same adversary
SUMMED = 512  # number of sampled words that estimate a sum over a larger vocabulary
WORDS_AT_A_TIME = 4096  # words per block, whose distances to the sample are in memory together


class TemAdversary(LadderAdversary):
    """Adversary that guesses the source word w of an output y with the largest ln π(w) -
    ε·min(d(w,y), γ)/2 - ln Z(w, ε).

    Z(w, ε) = Σ_u μ(u)·exp(-ε·min(d(w,u), γ)/2), where μ is the base measure, is computed at the
    epsilons of a grid (``Ladder``). Between them ln Z is interpolated in ln ε
    (docs/explanation/recovery.md lists the errors). The base measure of y itself is the same for
    every w. Scores in float64 decide the guesses, and on a tie the first word wins.

    Attributes:
        bias: (L, V) ln π - ln Z at each epsilon of the grid.
    """

    def __init__(self, mechanism: Tem, prior: Floats, epsilon_range: tuple[float, float]) -> None:
        self.mechanism = mechanism
        self.vectors = mechanism.vectors
        self.ladder = Ladder(epsilon_range, RATIO)
        self._log_prior: Floats = np.log(prior)
        self.bias: Floats = self._log_prior - self.log_normalizers()
        squares = np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64)
        longest = float(np.sqrt(squares.max(initial=0.0)))
        # (p + 8) rounding steps of each product and square, as in the exact search.
        slack = (
            2.01
            * (self.vectors.shape[1] + 8)
            * 2.0**-24
            * (np.sqrt(squares) * longest + longest**2)
        )
        self._channel = TemChannel(
            self.vectors,
            squares.astype(np.float32),
            (2 * slack).astype(np.float32),
            float(mechanism.gamma(np.array([2.0]))[0]),  # ε·γ/2 is the same for all ε
            self.bias,
            self.bias.astype(np.float32),
        )

    def log_normalizers(self) -> Floats:
        """Return the log normalizer ln Z of every word at each grid epsilon of the ladder, (L,
        V).
        """
        return log_normalizers(self.mechanism, self.ladder.rungs)

    def log_likelihood(
        self,
        words: Ids,
        outputs: Ids,
        epsilon: Floats,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return log-likelihoods ln Pr[M(w) = y] of n words and outputs, as in ``Adversary``.

        Raises:
            ParameterError: if an epsilon lies outside the grid of the ladder.
        """
        from lexveil.core.embeddings.exact_search import pair_distances

        distances = pair_distances(self.vectors, words, outputs)
        score = np.minimum(epsilon / 2 * distances, self._channel.limit)
        bias = self.ladder.at(self.bias, words, self.ladder.weights(epsilon))
        log_likelihood: Floats = bias - self._log_prior[words] - score
        return log_likelihood

    def _decode(
        self, products: Vectors, block: Block, interpolation: Interpolation, candidates: Candidates
    ) -> None:
        from lexveil.readers.kernels.tem import decode

        decode(self._channel, products, block, interpolation, candidates)


def log_normalizers(mechanism: Tem, epsilon: Floats) -> Floats:
    """Return the log normalizer ln Σ_u μ(u)·exp(-ε·min(d(w,u), γ)/2) of every word w at L epsilons,
    (L, V).

    For more than ``SMALL_VOCABULARY`` words the sum is estimated: it is the term of the word
    itself, plus the mean over ``SUMMED`` other words times the measure of all others. The estimate
    is accurate to about 0.05 and takes a few hundredths of the time. If single near words dominate
    a sum, the scores of these words differ by far more than that, so hardly any guess changes.
    """
    vectors = mechanism.vectors
    n = mechanism.size
    base = np.exp2(-mechanism.halvings.astype(np.float64))
    sums = np.empty((len(epsilon), n))
    limit = float(mechanism.gamma(np.array([2.0]))[0])
    if n <= SMALL_VOCABULARY:
        from lexveil.core.embeddings.exact_search import distance_rows

        for word in range(n):
            distances = distance_rows(vectors, np.array([word]))[0]
            sums[:, word] = (
                base * np.exp(-np.minimum(epsilon[:, None] / 2 * distances, limit))
            ).sum(axis=1)
        return np.log(sums)
    squares = np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64).astype(np.float32)
    others = np.sort(np.random.default_rng(PUBLIC_SEED).choice(n, SUMMED, replace=False))
    for start in range(0, n, WORDS_AT_A_TIME):
        words = np.arange(start, min(start + WORDS_AT_A_TIME, n))
        products = vectors[words] @ vectors[others].T
        distances = np.sqrt(np.maximum(squares[words, None] + squares[others] - 2 * products, 0))
        is_own = words[:, None] == others
        # share of the sample in the measure of all other words
        share = np.where(is_own, 0.0, base[others]).sum(axis=1) / (base.sum() - base[words])
        for level, rate in enumerate((epsilon / 2).astype(np.float32)):
            weights = np.exp(-np.minimum(rate * distances, np.float32(limit)))
            weights[is_own] = 0
            sums[level, words] = base[words] + (weights * base[others]).sum(axis=1) / share
    return np.log(sums)
