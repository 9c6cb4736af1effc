"""Unigram adversaries, which decode one output word at a time by Bayes' rule. They know the
channel, that is the mechanism's output distribution for each source word, and the public
frequencies of words.

Let y be the output of a token with budget ε. The adversary's posterior of each word w is
proportional to π(w)·Pr[M(w)=y], where π is the public frequency. It guesses the most probable word;
no guess from a single output is right more often (Bayes). On a tie, the first word of the
vocabulary wins.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lexveil.base.errors import ParameterError
from lexveil.base.types import Floats, Ids, Rows, Vectors
from lexveil.readers.seen_tokens import Symbols

OUTPUTS = 128  # outputs per block, whose distances to all words are in memory together
BETWEEN = 1e-12  # relative difference below which an epsilon counts as equal to one of the grid


class Candidates(NamedTuple):
    """The k most probable source words of each of n output words, most probable first.

    Attributes:
        ids: (n, k); -1 in empty places.
        log_joint: (n, k) ln π(w)·Pr[M(w)=y], up to a constant of each output; -inf in empty places.
    """

    ids: Ids
    log_joint: Floats

    @classmethod
    def unknown(cls, n: int, k: int) -> Candidates:
        """Return an empty result for n outputs and k candidates, which a compiled function will
        fill.
        """
        return cls(np.full((n, k), -1, dtype=np.int64), np.full((n, k), -np.inf))


class Block(NamedTuple):
    """Tokens grouped by output word: the distinct outputs (m,), the position of each output's first
    token in the groups (m + 1,), and the tokens of all groups (n,).
    """

    outputs: Ids
    starts: Rows
    tokens: Rows


class Interpolation(NamedTuple):
    """Weights that interpolate values between the epsilons of a grid (``Ladder``), for n tokens.

    The fields are the budgets (n,), the number of the first grid epsilon that is used (n,), and the
    weights of the ``width`` grid epsilons from there on (n, width).
    """

    epsilon: Floats
    first: Rows
    weights: Floats


class TemChannel(NamedTuple):
    """Precomputed data for decoding outputs of TEM (the truncated exponential mechanism). The score
    of a source word is bias - min(ε·d/2, limit).

    Attributes:
        vectors: (V, p).
        squares, slack: (V,) squared lengths, and the largest error of a squared distance to each
            word.
        limit: ε·γ/2.
        bias, screen: (L, V) ln π - ln Z at each of the L grid epsilons, in float64 and in float32.
    """

    vectors: Vectors
    squares: Vectors
    slack: Vectors
    limit: float
    bias: Floats
    screen: Vectors


class EstimatedChannel(NamedTuple):
    """Precomputed data for decoding outputs of a mechanism whose output distribution was estimated,
    at the L epsilons of a grid.

    Attributes:
        squares: (V,) squared lengths.
        others: (L, V) score of each word w that is not the output, without the part that depends on
            its distance.
        own: (L, V) score of each word if it is the output, minus the common part of all other
            words.
        near: (2, V) distances of each word to its nearest other ones, see ``estimate.near_of``.
        slopes: (L, F) slopes of the features of a pair.
        closest, farthest: range of the distances in the simulation.
    """

    squares: Vectors
    others: Vectors
    own: Floats
    near: Vectors
    slopes: Floats
    closest: float
    farthest: float


class Adversary(ABC):
    """Adversary that decodes the output words of one mechanism over one vocabulary."""

    @abstractmethod
    def candidates(
        self, outputs: Ids, epsilon: Floats, k: int, before: Ids | None = None
    ) -> Candidates:
        """Return the k most probable source words of each of n output words.

        Args:
            outputs: (n,) the outputs.
            epsilon: (n,) the budget of each token.
            k: number of candidates.
            before: (n,) the token written before each output, as a row of the embedding, or -1;
                only few mechanisms depend on it.
        """

    @abstractmethod
    def log_likelihood(
        self, words: Ids, outputs: Ids, epsilon: Floats, before: Ids | None = None
    ) -> Floats:
        """Return log-likelihoods ln Pr[M(w) = y] of n pairs of a source word w and an output word
        y, up to a constant of each output; shape (n,).

        Args:
            words: (n,) the words w.
            outputs: (n,) the outputs y.
            epsilon: (n,) the budget of each token.
            before: (n,) the token written before each output, as in ``candidates``.
        """

    def in_texts(self, tokens: Symbols, k: int) -> Candidates:
        """Return the k most probable source words of each replaced word, given the whole texts."""
        drawn = tokens.outputs >= 0
        return self.candidates(
            tokens.outputs[drawn], tokens.epsilon[drawn], k, tokens.before[drawn]
        )

    def guess(self, outputs: Ids, epsilon: Floats, before: Ids | None = None) -> Ids:
        """Return the most probable source word of each of n outputs, (n,)."""
        return self.candidates(outputs, epsilon, 1, before).ids[:, 0]


def by_output(outputs: Ids) -> Iterator[Block]:
    """Group tokens by output word, and yield the groups in blocks of ``OUTPUTS`` distinct outputs.
    All tokens with the same output are decoded at once, since they share the distances of that
    output.
    """
    tokens = np.argsort(outputs, kind="stable").astype(np.int64)
    distinct, starts = np.unique(outputs[tokens], return_index=True)
    starts = np.append(starts, len(outputs)).astype(np.int64)
    for start in range(0, len(distinct), OUTPUTS):
        block = distinct[start : start + OUTPUTS]
        yield Block(block, starts[start : start + len(block) + 1], tokens)


class Ladder:
    """Ascending grid of epsilons at which an adversary's values are precomputed. Neighbouring
    epsilons differ by at most a fixed ratio; values at other epsilons are interpolated in ln ε.

    Attributes:
        rungs: (L,) the epsilons of the grid, ascending.
        width: number of grid epsilons in an interpolation.
    """

    def __init__(self, epsilon_range: tuple[float, float], ratio: float, width: int = 4) -> None:
        low, high = epsilon_range
        if not 0 < low <= high < math.inf:
            raise ParameterError(
                f"epsilons of an adversary run from {low:g} to {high:g}; give 0 < lowest <= highest"
            )
        steps = math.ceil(math.log(high / low) / math.log(ratio) - BETWEEN)
        self.rungs: Floats = np.geomspace(low, high, steps + 1) if steps else np.array([low])
        self.width = min(width, len(self.rungs))

    def weights(self, epsilon: Floats) -> Interpolation:
        """Return the interpolation weights for the budgets of n tokens. If a budget is an epsilon
        of the grid, interpolation gives the value at this epsilon exactly.

        The weights are those of Lagrange's polynomial in ln ε through the nearest epsilons of the
        grid on either side.

        Raises:
            ParameterError: if a budget lies outside the grid.
        """
        low = self.rungs[0] * (1 - BETWEEN)
        high = self.rungs[-1] * (1 + BETWEEN)
        if not ((epsilon >= low) & (epsilon <= high)).all():
            raise ParameterError(
                f"the adversary was built for epsilons from {low:.6g} to {high:.6g} per token, "
                f"but the tokens have {epsilon.min():.6g} to {epsilon.max():.6g}; build it for "
                "this range"
            )
        nodes = np.log(self.rungs)
        log_epsilon = np.log(epsilon)
        below = np.searchsorted(nodes, log_epsilon, side="right") - 1
        first = np.clip(
            below - (self.width // 2 - 1 if self.width > 1 else 0), 0, len(nodes) - self.width
        )
        weights = np.ones((len(epsilon), self.width))
        for i in range(self.width):
            for j in range(self.width):
                if i != j:
                    weights[:, i] *= (log_epsilon - nodes[first + j]) / (
                        nodes[first + i] - nodes[first + j]
                    )
        nearest = np.abs(nodes[first[:, None] + np.arange(self.width)] - log_epsilon[:, None])
        on_rung = nearest.min(axis=1, initial=np.inf) <= BETWEEN
        weights[on_rung] = nearest[on_rung] == nearest[on_rung].min(axis=1, keepdims=True)
        return Interpolation(epsilon, first.astype(np.int64), weights)

    @staticmethod
    def at(values: Floats | Vectors, words: Ids, interpolation: Interpolation) -> Floats:
        """Interpolate precomputed values of words, (L, V), at the budgets of n tokens. The result
        has shape (n,).
        """
        total = np.zeros(len(words))
        for step in range(interpolation.weights.shape[1]):
            weight = interpolation.weights[:, step]
            total += weight * values[interpolation.first + step, words]
        return total


class LadderAdversary(Adversary):
    """Adversary that scores a source word by its distance to the output word and by values that are
    precomputed for a grid of ε (``Ladder``).

    Attributes:
        vectors: (V, p) vectors of the words.
        ladder: the grid of ε.
    """

    vectors: Vectors
    ladder: Ladder

    def candidates(
        self,
        outputs: Ids,
        epsilon: Floats,
        k: int,
        before: Ids | None = None,  # noqa: ARG002
    ) -> Candidates:
        """Return the k most probable source words of each of n output words, as in ``Adversary``.

        Raises:
            ParameterError: if an epsilon lies outside the grid of the ladder.
        """
        candidates = Candidates.unknown(len(outputs), min(k, len(self.vectors)))
        interpolation = self.ladder.weights(epsilon)
        for block in by_output(outputs):
            self._decode(
                self.vectors[block.outputs] @ self.vectors.T, block, interpolation, candidates
            )
        return candidates

    @abstractmethod
    def _decode(
        self, products: Vectors, block: Block, interpolation: Interpolation, candidates: Candidates
    ) -> None:
        """Find the source word candidates of a block of output words and write them to
        ``candidates``, given the inner products (m, V) of the block's outputs with all words.
        """
