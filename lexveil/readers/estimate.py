"""Unigram adversary for mechanisms without a closed-form output distribution. It applies Bayes'
rule with a distribution that is estimated from a public simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lexveil.base.errors import ParameterError
from lexveil.base.types import Flags, Floats, Ids, Vectors
from lexveil.core.mechanisms.base import Mechanism
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.readers.adversary import (
    Block,
    Candidates,
    EstimatedChannel,
    Interpolation,
    Ladder,
    LadderAdversary,
)

if TYPE_CHECKING:
    from lexveil.core.embeddings.neighborhoods import NearTable

PUBLIC_SEED = 20261  # public seed of the simulation, so that everybody builds the same adversary
RATIO = 2.0  # largest ratio of neighbouring epsilons of the ladder
DRAWS = 2048  # words replaced at each epsilon of the ladder
PAIRS = 8192  # random pairs of words; their mean distance is the unit of distances
LEAST_PRIOR = 1e-100  # words with a smaller prior are not drawn
PRODUCTS = 4  # random pairs per true pair of a word and its output
BY_DISTANCE = ("madlib", "mahalanobis")  # mechanisms whose outputs depend on distances alone
NEIGHBORS = 7  # number of near words that describe the neighbourhood of a word
FEATURES = 11  # number of features of a pair of words
RIDGE = 1.0  # ridge penalty of slopes, so that a few pairs have little influence
TINY = 1e-6  # distance of two words with the same vector
SMALLEST = 1e-3  # least mean ratio of a word, relative to that of the median word
NEWTON = 50  # greatest number of Newton steps; about ten are needed
LENGTHS = 32  # number of groups of words by the length of their vectors
# weight, in outputs, of the expectation from the length of a word's vector against the counted
# outputs
EVIDENCE = 1.0
WORDS_AT_A_TIME = 4096  # words searched per block
NORMALIZE = 256  # number of words over which the ratio of a word is averaged
AMONG = 2048  # number of words among which near words are searched for mechanisms of BY_DISTANCE
OUTPUTS_AT_A_TIME = 16  # outputs per block, whose ratios to all words are in memory together


# function that opens the precomputed lists of near words for the same vectors, if there are any
Lists = Callable[[], "NearTable | None"]


class EstimatedAdversary(LadderAdversary):
    """Adversary that guesses the most probable source word w by Bayes' rule, with the estimated
    distribution P[y|w] = own(w) for y = w, else (1 - own(w))·Q(y)·r(w,y) / N(w).

    At each epsilon of a ladder (a grid of ε), the mechanism itself replaces ``DRAWS`` words from a
    public seed: half of them are drawn by the prior, half uniformly. d is the Euclidean distance of
    the vectors.

    * own(w), the probability that a word is unchanged, is a function of the distance to the nearest
      other word: isotonic regression on the simulated words.
    * r, the factor by which a changed output is more probable for its word than by chance, is a
      ratio of two densities: that of true pairs of word and output, and that of the same words and
      outputs paired at random. Logistic regression, which separates the two kinds of pairs,
      estimates it. ln r is linear in d, d², ln d, and in the first and fourth powers of min(n/d,
      1), where n are the distances of w and of y to their nearest and to their ``NEIGHBORS``-th
      nearest other word. Some mechanisms depend on distances, others on the order of neighbours.
    * Q(y), the probability that a changed word becomes y, comes from counts, shrunk towards the
      counts of vectors of similar length, because long vectors win if noise is large.
    * N(w) normalizes the probabilities of w to 1: it is the mean of r over words drawn by Q.

    Between the epsilons of the grid the logarithms are interpolated linearly in ln ε.
    docs/explanation/recovery.md lists measured errors.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        prior: Floats,
        epsilon_range: tuple[float, float],
        near: Callable[[], Vectors] | None = None,
    ) -> None:
        from lexveil.core.embeddings.exact_search import pair_distances

        vectors: Vectors | None = getattr(mechanism, "vectors", None)
        if vectors is None:
            raise ParameterError(
                f"{mechanism.name} has neither a closed form nor vectors, so no adversary can be "
                "built"
            )
        self.vectors = vectors
        self.ladder = Ladder(epsilon_range, RATIO, width=2)
        self._squares = np.einsum("vp,vp->v", vectors, vectors, dtype=np.float64).astype(np.float32)
        self._prior = prior
        self._near = near() if near else near_of(mechanism)
        every = np.random.default_rng(PUBLIC_SEED).integers(len(vectors), size=(2, PAIRS))
        self._scale = float(pair_distances(vectors, *every).mean()) or 1.0
        self._by_length = (
            np.argsort(np.argsort(self._squares, kind="stable")) * LENGTHS // len(vectors)
        )
        self._units = np.ones(FEATURES)
        self._units[:2] = 1 / self._scale, 1 / self._scale**2
        self._closest, self._farthest = self._scale, self._scale  # over all simulated pairs
        rungs = [
            self._simulate(mechanism, level, epsilon)
            for level, epsilon in enumerate(self.ladder.rungs.tolist())
        ]
        leaving, own, spread, slopes = map(np.array, zip(*rungs, strict=True))
        log_prior = np.log(prior)
        others = (log_prior + leaving).astype(np.float32)
        known = self._squares, others, log_prior + own - spread, self._near, slopes
        self._channel = EstimatedChannel(*known, self._closest, self._farthest)

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

        channel = self._channel
        interpolation = self.ladder.weights(epsilon)
        distances = pair_distances(self.vectors, words, outputs)
        distances = np.clip(distances, self._closest, self._farthest)
        features = self._features(words, outputs, distances) / self._units
        log_ratio = np.zeros(len(words))
        for step in range(interpolation.weights.shape[1]):
            slopes = channel.slopes[interpolation.first + step]
            log_ratio += interpolation.weights[:, step] * (slopes * features).sum(axis=1)
        changed = self.ladder.at(channel.others, words, interpolation) + log_ratio
        unchanged = self.ladder.at(channel.own, words, interpolation)
        joint = np.where(words == outputs, unchanged, changed)
        log_likelihood: Floats = joint - np.log(self._prior[words])
        return log_likelihood

    def _decode(
        self, products: Vectors, block: Block, interpolation: Interpolation, candidates: Candidates
    ) -> None:
        from lexveil.readers.kernels.estimate import decode

        decode(self._channel, products, block, interpolation, candidates)

    def _simulate(
        self, mechanism: Mechanism, level: int, epsilon: float
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Simulate the mechanism at one epsilon. From the outputs, estimate the logarithms of (1 -
        own)/N, own and Q, each (V,), and the slopes of ln r; the class docstring defines these
        functions.

        Raises:
            ParameterError: if the mechanism refuses epsilon.
        """
        from lexveil.core.embeddings.exact_search import pair_distances

        n = DRAWS
        rng = stream(PUBLIC_SEED, "recovery", mechanism.name, str(level))
        meant = np.flatnonzero(self._prior > LEAST_PRIOR)
        likely = self._prior[meant] / self._prior[meant].sum()
        words = np.concatenate(
            [rng.choice(meant, n // 2, p=likely), meant[rng.integers(len(meant), size=n - n // 2)]]
        )
        budgets = np.full(n, epsilon)
        outputs = mechanism.replace(words, budgets, mechanism.noise(budgets, rng))
        own = self._unchanged(words, outputs == words)
        words, outputs = words[outputs != words], outputs[outputs != words]
        spread = self._log_spread(outputs)
        left = np.concatenate([words, np.tile(words, PRODUCTS)])
        right = np.concatenate([outputs, *(rng.permutation(outputs) for _ in range(PRODUCTS))])
        differ = left != right
        left, right, is_pair = (
            left[differ],
            right[differ],
            np.arange(len(left))[differ] < len(words),
        )
        distances = np.maximum(pair_distances(self.vectors, left, right), TINY)
        self._closest = min(self._closest, float(distances.min(initial=np.inf)))
        self._farthest = max(self._farthest, float(distances.max(initial=0.0)))
        pairs = self._features(left, right, distances)
        slopes = discriminate(pairs, is_pair) * self._units
        weights = np.exp(spread)
        typical = rng.choice(len(weights), NORMALIZE, p=weights / weights.sum())
        return np.log1p(-own) - self._log_mean_ratio(slopes, typical), np.log(own), spread, slopes

    def _features(self, words: Ids, outputs: Ids, d: Floats) -> Floats:
        """Return the regression features of n pairs of different words at distance d, (n,
        FEATURES). The estimated ln r is linear in these features.
        """
        shares = [np.minimum(near[ids] / d, 1) for ids in (words, outputs) for near in self._near]
        # about 1, so that the ridge penalty has the same strength for every space
        x = d / self._scale
        return np.column_stack(
            [x, x * x, np.log(d), *(part for share in shares for part in (share, share**4))]
        )

    def _unchanged(self, words: Ids, is_unchanged: Flags) -> Floats:
        """Estimate the probability that the mechanism leaves each word unchanged, (V,). The result
        is never exactly 0 or 1.
        """
        from scipy.optimize import isotonic_regression

        nearest = self._near[0].astype(np.float64)
        order = np.argsort(nearest[words], kind="stable")
        fitted = isotonic_regression(is_unchanged[order].astype(np.float64)).x
        own: Floats = np.interp(nearest, nearest[words][order], fitted)
        return np.clip(own, 0.5 / DRAWS, 1 - 0.5 / DRAWS)

    def _log_spread(self, outputs: Ids) -> Floats:
        """Estimate ln Q(y) of all words, (V,), where Q(y) is the probability that a changed word
        becomes y. Counts are shrunk towards the counts of words with vectors of similar length.
        """
        n = max(len(outputs), 1)
        counts = np.bincount(outputs, minlength=len(self.vectors))
        sizes = np.bincount(self._by_length, minlength=LENGTHS)
        together = np.bincount(self._by_length, weights=counts, minlength=LENGTHS) + 0.5
        expected = (n * together / (together.sum() * np.maximum(sizes, 1)))[self._by_length]
        spread: Floats = np.log(expected * (counts + EVIDENCE) / (expected + EVIDENCE) / n)
        return spread

    def _log_mean_ratio(self, slopes: Floats, outputs: Ids) -> Floats:
        """Estimate the normalizer ln N(w) of all words w, (V,). N(w) is the mean of r over some
        outputs other than w.
        """
        linear, square, log, *shares = (slopes / self._units).tolist()
        total = np.zeros(len(self.vectors))
        for start in range(0, len(outputs), OUTPUTS_AT_A_TIME):
            some = outputs[start : start + OUTPUTS_AT_A_TIME]
            product = self.vectors @ self.vectors[some].T
            squares = self._squares[:, None] + self._squares[some] - 2 * product
            d = np.clip(
                np.sqrt(np.maximum(squares, 0)),
                np.float32(self._closest),
                np.float32(self._farthest),
            )
            x = d / np.float32(self._scale)
            log_ratio = (
                np.float32(linear) * x + np.float32(square) * x * x + np.float32(log) * np.log(d)
            )
            sides = (near[:, None] for near in self._near), (near[some] for near in self._near)
            for number, near in enumerate(chain(*sides)):
                share = np.minimum(near / d, 1)
                fourth = np.square(np.square(share))
                log_ratio += (
                    np.float32(shares[2 * number]) * share
                    + np.float32(shares[2 * number + 1]) * fourth
                )
            ratio = np.exp(np.minimum(log_ratio, 80.0), dtype=np.float64)
            ratio[some, np.arange(len(some))] = 0
            total += ratio.sum(axis=1)
        mean: Floats = np.log(
            np.maximum(total, max(SMALLEST * float(np.median(total)), 1e-300)) / len(outputs)
        )
        return mean


def near_of(mechanism: Mechanism, lists: Lists | None = None) -> Vectors:
    """Return the distances of each of V words to its nearest and to its ``NEIGHBORS``-th nearest
    other word, (2, V).

    For mechanisms of ``BY_DISTANCE``, near words are searched among ``AMONG`` words only, which
    takes a twentieth of the time and has no measurable effect (docs/explanation/recovery.md).

    Args:
        lists: function that opens precomputed lists; they affect only the time.
    """
    vectors: Vectors = mechanism.vectors
    by_distance = mechanism.name in BY_DISTANCE and mechanism.post_processing is None
    if by_distance and len(vectors) > 2 * AMONG:
        return _near_among(vectors, AMONG)
    from lexveil.core.embeddings.neighborhoods import Neighborhoods

    neighborhoods = Neighborhoods(vectors, lists and lists())
    near = np.empty((len(vectors), min(NEIGHBORS, neighborhoods.size - 1)), dtype=np.float32)
    for words, table, rows in neighborhoods.tables(np.arange(len(vectors))):
        near[words] = table.distances[rows, 1 : NEIGHBORS + 1]
    return _first_and_last(near)


def _near_among(vectors: Vectors, among: int) -> Vectors:
    """Estimate the distances that ``near_of`` returns, from a fixed sample of ``among`` words."""
    from lexveil.core.embeddings.exact_search import ExactSearch

    n = len(vectors)
    chosen = np.sort(np.random.default_rng(PUBLIC_SEED).choice(n, among, replace=False))
    near = np.empty((n, NEIGHBORS + 1), dtype=np.float32)
    search = ExactSearch(vectors[chosen])
    for start in range(0, n, WORDS_AT_A_TIME):
        batch = slice(start, start + WORDS_AT_A_TIME)
        near[batch] = search.nearest_k(vectors[batch].astype(np.float64), NEIGHBORS + 1)[1]
    is_chosen = np.zeros((n, 1), dtype=np.bool_)
    is_chosen[chosen] = True
    # A word of the sample finds itself first, at distance 0.
    return _first_and_last(np.where(is_chosen, near[:, 1:], near[:, :-1]))


def _first_and_last(near: Vectors) -> Vectors:
    """Reduce the k distances of each word to its near words, (V, k), to the first and the last, (2,
    V); both are 1 if k is 0.
    """
    ends = np.ones((2, len(near)), dtype=np.float32)
    if near.shape[1]:
        ends[:] = near[:, 0], near[:, -1]
    return ends


def discriminate(features: Floats, is_pair: Flags) -> Floats:
    """Return the slopes (F,) of the log odds that a pair is a true pair of word and output, not a
    random pair, by logistic regression with a ridge penalty.

    The odds are the ratio of the densities times the ratio of the numbers of true and random pairs;
    the intercept absorbs the second ratio.
    """
    x = np.column_stack([np.ones(len(features)), features])
    penalty = np.full(x.shape[1], RIDGE)
    beta = np.zeros(x.shape[1])
    for _ in range(NEWTON):
        chance = 1 / (1 + np.exp(-np.clip(x @ beta, -50, 50)))
        gradient = x.T @ (is_pair - chance) - penalty * beta
        hessian = (x * (chance * (1 - chance))[:, None]).T @ x + np.diag(penalty)
        move = np.linalg.solve(hessian, gradient)
        beta += move
        if np.abs(move).max() < 1e-8:
            break
    slopes: Floats = beta[1:]
    return slopes
