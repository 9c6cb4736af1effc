"""TEM, the Truncated Exponential Mechanism: near words by their distance, all words beyond γ alike."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from lexveil.compiled import worth_kernels
from lexveil.mechanisms.base import EuclideanMechanism, register
from lexveil.mechanisms.preconditions import check_epsilon
from lexveil.mechanisms.rejection import PENDING, UNDECIDED
from lexveil.parameters import Section
from lexveil.types import Flags, Floats, Ids, Vectors, Words

LARGEST = 256  # near words listed of each word
MEMBERS = 32_000_000  # places in the lists of all words together: 128 MB at most
# A draw from a word's list takes as long as so many proposals; making the list as long as V·p / LIST + MEASURE.
DRAW = 16
LIST, MEASURE = 1500, 2000
# A draw from clusters takes as long as so many uniform proposals; measuring them, as long as CLUSTERS_MEASURE.
CLUSTERS, CLUSTERS_MEASURE = 8, 400
TOKENS = 1_000_000  # of a text, among which a list must pay
ATTEMPTS = 2048  # of them per token; a word that is far from all others goes on with its near words
LENGTH_BITS = 62  # of the length of all envelopes together
DIGITS = 60  # of exact decisions
TOKEN = 2e-3  # seconds that a draw takes without compiled kernels
FIRST_NONCE = 2  # of the streams of exact decisions; 0 and 1 are those of the proposals
SAMPLE = 32  # words that say how far a word is from all others, on average


class TemParameters(Section):
    """Parameters of tem."""

    beta: float = Field(0.001, ge=1e-12, lt=1, description="largest chance of a word beyond the radius γ")


class _Tokens(NamedTuple):
    """Tokens to be replaced: ids, epsilon, gamma, the keys (n, 4) of their streams, and how they are proposed first."""

    ids: Ids
    epsilon: Floats
    gamma: Floats
    keys: Words
    plain: Flags

    def take(self, chosen: Ids) -> _Tokens:
        """Some of them."""
        return _Tokens(
            self.ids[chosen], self.epsilon[chosen], self.gamma[chosen], self.keys[chosen], self.plain[chosen]
        )


@register
class Tem(EuclideanMechanism):
    """Replace w by u with probability proportional to exp(-ε·min(d(w,u), γ)/2), γ = (2/ε)·ln((1-β)(V-1)/β).

    Source: Carvalho et al. (2023), Algorithms 2 and 3; γ from Theorem 4.2, neither rounded nor taken from the data.
    The paper draws a near word or ⊥ ("elsewhere") by Gumbel noise; summing the two cases gives the distribution
    above; any exact sampler of it is the same mechanism.

    Privacy: ε·d metric DP with d the Euclidean distance. When w becomes w', min(d, γ) moves by at most d(w,w')
    (triangle inequality), the weights by at most exp(ε·d/2), and so does their sum.

    Sampling is by rejection, exact for any envelope. The vocabulary is cut into clusters; a cluster has the weight of a
    lower bound of the distance to its words, and the word itself is a cluster of its own. A uniform member of the
    chosen cluster is accepted by the ratio of its own weight; if bounds of the distance decide that, it is not
    measured. Where uniform proposals are accepted often enough, all words are one cluster; where clusters would need
    too many, they are shells of the exact nearest words, of 1, 1, 2, 4, 8, … words, and all others. Envelopes are whole
    numbers, uniform numbers have as many bits as it takes, and what rounding could decide is decided by decimal
    arithmetic: the distribution is exactly that of the distances as float64 has them. Their rounding adds to the loss
    at most ``rounding`` nats a token.

    Attributes:
        vectors: (V, p) float32.
        beta: in (0, 1); at most this is the chance of a word beyond γ.
    """

    name: ClassVar[str] = "tem"
    exactness: ClassVar[str] = (
        "words are drawn exactly by their weights; the rounding of distances to float64 adds less than 1e-10 to the "
        "exponent for each token"
    )
    Parameters: ClassVar[type[Section]] = TemParameters

    def __init__(self, vectors: Vectors, **parameters: Any) -> None:
        from lexveil.embeddings.sketch import Sketch

        self.beta = self.checked(TemParameters, parameters).beta
        super().__init__(vectors)
        n = self.size
        # All words and a list once more, each of at most 2^bits, have a length that 62 bits can count; float64 can
        # tell all positions below 2^52 apart.
        self.bits = min(52, LENGTH_BITS - (2 * n + 1).bit_length())
        self.norms = np.sqrt(np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64))
        self.sketch = Sketch(self.vectors, self.norms)
        # A power of two, so that the shells fill the list; a small vocabulary is listed whole.
        size = 2 ** int(math.log2(min(LARGEST, max(64, MEMBERS // max(n, 1)))))
        size = min(size, n)
        ends = [0, *(2**i for i in range(size.bit_length()) if 2**i < size), size]
        self.shells = np.array(sorted(set(ends)), dtype=np.int64)
        # Filled word by word as they occur; pages that are never written take no memory.
        self.members = np.empty((n, size), dtype=np.int32)
        self.bounds = np.empty((n, len(self.shells)))
        self.listed = np.zeros(n, dtype=np.bool_)
        # Some words, whose mean distance from a word says how many uniform proposals it would take; always the same.
        self._sample = np.random.default_rng(0).integers(max(n, 1), size=SAMPLE)
        self._mean_distance = np.full(n, np.nan)
        # What is made of a word serves all of its tokens; how many there are is guessed by Zipf's law, as words are
        # numbered by falling frequency where word2vec made them: this is one over the number. A wrong guess costs time.
        self._share = np.arange(1, n + 1) * math.log(n + 1) / TOKENS
        # Up to so many proposals from clusters are quicker than a list.
        self._proposals = DRAW + (n * self.vectors.shape[1] / LIST + MEASURE) * self._share

    def gamma(self, epsilon: Floats) -> Floats:
        """The radius beyond which all words weigh the same, in embedding units."""
        return truncation(epsilon, self.beta, len(self.vectors))

    def log_pmf(self, ids: Ids, epsilon: Floats) -> Floats:
        """Log probabilities ln Pr[M(w) = u] for each of n ids and every word u, shape (n, V)."""
        from lexveil.embeddings.exact_search import distance_rows

        check_epsilon(epsilon)
        score = np.minimum(distance_rows(self.vectors, ids), self.gamma(epsilon)[:, None])
        log_weight: Floats = -epsilon[:, None] / 2 * score
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Words:
        """Draw the key of each token's own stream, (n, 4) uint64.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        from lexveil.mechanisms.noise.keystream import KEY_WORDS, draw_words

        check_epsilon(epsilon)
        return draw_words(len(epsilon), KEY_WORDS, rng)

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw from the distribution with each token's own stream."""
        sampler: Any
        if worth_kernels(len(ids) * TOKEN):
            from lexveil.mechanisms.kernels import tem as sampler
        else:
            from lexveil.mechanisms.uncompiled import tem as sampler
        sketch = self.sketch
        plain = self.plain(ids, epsilon)
        sketch.measure(ids[~plain])

        def by_sketch(tokens: _Tokens, refused: Ids, doubts: Ids) -> Ids:
            drawn: Ids = sampler.draw_by_sketch(
                self.vectors,
                sketch.rows,
                sketch.step,
                sketch.order,
                sketch.place,
                sketch.ends,
                sketch.nearest,
                self._mean_distance,
                self._proposals,
                *tokens,
                ATTEMPTS,
                self.bits,
                refused,
                doubts,
            )
            return drawn

        def from_lists(tokens: _Tokens, refused: Ids, doubts: Ids) -> Ids:
            drawn: Ids = sampler.draw_from_lists(
                self.vectors,
                sketch.rows,
                sketch.step,
                sketch.place,
                self.members,
                self.bounds,
                self.shells,
                *tokens[:-1],
                self.bits,
                refused,
                doubts,
            )
            return drawn

        tokens = _Tokens(ids, epsilon, self.gamma(epsilon), noise, plain)
        out = self._settled(by_sketch, tokens, FIRST_NONCE)
        left = np.flatnonzero(out == PENDING)
        if len(left):
            self._list(ids[left])
            out[left] = self._settled(from_lists, tokens.take(left), FIRST_NONCE + 1)
        return out

    def _settled(self, draw: Callable[[_Tokens, Ids, Ids], Ids], tokens: _Tokens, nonce: int) -> Ids:
        """What ``draw`` draws, with exact decisions where rounding could have decided."""
        n = len(tokens.ids)
        refused, doubts = np.zeros(n, dtype=np.int64), np.empty((n, 3), dtype=np.int64)
        out = draw(tokens, refused, doubts)
        while len(doubtful := np.flatnonzero(out == UNDECIDED)):
            for token in doubtful.tolist():
                proposed, position, number = doubts[token].tolist()
                one = tokens.take(np.array([token]))
                if self._is_accepted(one, proposed, position, nonce + 2 * number):
                    out[token] = proposed
                refused[token] = number + 1
            again = doubtful[out[doubtful] == UNDECIDED]
            still = doubts[again]
            out[again] = draw(tokens.take(again), refused[again], still)
            doubts[again] = still
        return out

    def _is_accepted(self, token: _Tokens, proposed: int, position: int, nonce: int) -> bool:
        """Whether a proposal at a position of which only the whole part is known yet is accepted, exactly."""
        from lexveil.embeddings.exact_search import pair_distances
        from lexveil.mechanisms.noise.keystream import expand

        distance = min(float(pair_distances(self.vectors, token.ids, np.array([proposed]))[0]), float(token.gamma[0]))
        n_bytes = 0
        while True:
            n_bytes += 8
            fraction = int.from_bytes(expand(token.keys[0], n_bytes, nonce), "big")
            with decimal.localcontext() as context:
                context.prec = DIGITS + 3 * n_bytes
                exponent = -Decimal(float(token.epsilon[0]) / 2) * Decimal(distance)
                low = Decimal(position) + Decimal(fraction) / Decimal(2) ** (8 * n_bytes)
                high = Decimal(position) + Decimal(fraction + 1) / Decimal(2) ** (8 * n_bytes)
                limit = Decimal(2) ** self.bits * exponent.exp()
                error = limit * Decimal(10) ** (10 - context.prec)  # far more than the rounding of the lines above
                if high <= limit - error:
                    return True
                if low >= limit + error:
                    return False
                if not exponent:
                    return True  # at distance 0 the limit is S, which no position reaches

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """ε·d, and what the rounding of distances can add."""
        return epsilon * distance + self.rounding(epsilon)

    def rounding(self, epsilon: Floats) -> Floats:
        """What the rounding of distances can add to the loss of each token, in nats; shape (n,).

        The differences of float32 coordinates are rounded once in float64, squares once, their sum p - 1 times in any
        order, the root once: d is right to a relative (p + 4)·2^-53. An error r of all scores min(d, γ) changes weights
        and their sum by exp(ε·r/2) each, for both words: 2·ε·r, where r <= γ·(p + 4)·2^-53.
        """
        relative = (self.vectors.shape[1] + 4) * 2.0**-53
        bound: Floats = 2 * relative * epsilon * self.gamma(epsilon)
        return bound

    def plain(self, ids: Ids, epsilon: Floats) -> Flags:
        """Whether the tokens are drawn by uniform proposals: a matter of word and ε, so never of the batch. Shape (n,).

        By the weight at the mean distance: those for which clusters would take longer.
        """
        from lexveil.embeddings.exact_search import pair_distances

        new = np.unique(ids)
        new = new[np.isnan(self._mean_distance[new])]
        pairs = np.repeat(new, len(self._sample)), np.tile(self._sample, len(new))
        self._mean_distance[new] = pair_distances(self.vectors, *pairs).reshape(-1, SAMPLE).mean(axis=1)
        weight = np.exp(-epsilon / 2 * np.minimum(self._mean_distance[ids], self.gamma(epsilon)))
        enough: Flags = weight * (CLUSTERS + CLUSTERS_MEASURE * self._share[ids]) >= 1
        return enough

    def _list(self, ids: Ids) -> None:
        """Make the lists of near words that are not there yet."""
        new = np.unique(ids)
        new = new[~self.listed[new]]
        for start in range(0, len(new), 4096):
            words = new[start : start + 4096]
            near, distances = self.search.nearest_k(self.vectors[words].astype(np.float64), self.members.shape[1])
            self.members[words] = near
            # Of each shell the smallest distance, and of all words that are not listed: the largest one listed. A hair
            # less, because another order of additions may measure a word a hair nearer.
            self.bounds[words, :-1] = distances[:, self.shells[:-1]] * (1 - 1e-13)
            self.bounds[words, -1] = distances[:, -1] * (1 - 1e-13)
            self.listed[words] = True


def truncation(epsilon: Floats, beta: float, n_words: int) -> Floats:
    """γ = (2/ε)·ln((1-β)(V-1)/β), Theorem 4.2; 0 where that is negative or V is 1."""
    if n_words < 2:
        return np.zeros(len(epsilon))
    gamma: Floats = np.maximum(0.0, 2 / epsilon * (np.log1p(-beta) + np.log(n_words - 1) - np.log(beta)))
    return gamma
