"""TEM, the Truncated Exponential Mechanism: near words by their distance, all words beyond γ alike."""

from __future__ import annotations

import math
from typing import ClassVar

import numba
import numpy as np
import numpy.typing as npt

from tasks.privacy.checks import check_epsilon, check_range
from tasks.privacy.keystream import KEY_WORDS, Words, draw_words, next_unit, open_stream
from tasks.space.search import ExactSearch, distance_rows, pair_distances, squared_distance
from tasks.space.word_space import Vectors

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Members = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

LARGEST = 256  # near words listed of each word
MEMBERS = 32_000_000  # places in the lists of all words together: 128 MB at most
# A draw from a word's list takes as long as so many uniform proposals; making the list as long as V·p / LIST + MEASURE.
DRAW = 8
LIST, MEASURE = 3000, 1000
TOKENS = 1_000_000  # of a text, among which a list must pay
ATTEMPTS = 2048  # of them per token; a word that is far from all others goes on with its near words
MARGIN = 1e-9  # of a bound, far more than rounding
SAMPLE = 32  # words that say how far a word is from all others, on average


class Tem:
    """Replace w by u with probability proportional to exp(-ε·min(d(w,u), γ)/2), γ = (2/ε)·ln((1-β)(V-1)/β).

    Source: Carvalho et al. (2023), Algorithms 2 and 3; γ from Theorem 4.2, neither rounded nor taken from the data.
    The paper draws a near word or ⊥ ("elsewhere") by Gumbel noise; summing the two cases gives the law above, and any
    exact sampler of it is the same mechanism.

    Privacy: ε·d metric DP with d the Euclidean distance. When w becomes w', min(d, γ) moves by at most d(w,w')
    (triangle inequality), the weights by at most exp(ε·d/2), and so does their sum.

    Sampling is by rejection, exact for any envelope. Shells of the exact nearest words, of 1, 1, 2, 4, 8, … words, have
    the weight of their nearest word; all others the weight of the farthest word listed; a uniform member of the chosen
    shell is accepted by the ratio of its own weight. For a word whose uniform proposals are accepted often enough, no
    list is made. A proposal that bounds of its distance decide (those of its shell, or the difference and the sum of
    the norms) is not measured. In float64: distances and weights to a few units in the last place, uniform numbers of
    53 bits, so that every probability is right to a relative 1e-7 or better.

    Attributes:
        vectors: (V, p) float32.
        beta: in (0, 1); at most this is the chance of a word beyond γ.
    """

    name: ClassVar[str] = "tem"
    metric: ClassVar[str] = "Euclidean distance of the embedding"
    guarantee: ClassVar[str] = "Pr[M(w)=y] <= exp(ε·d(w,w'))·Pr[M(w')=y]"

    def __init__(self, vectors: Vectors, beta: float = 0.001) -> None:
        check_range("tem.beta", beta, 0.0, 1.0, open_ends=True)
        self.search = ExactSearch(vectors)
        self.vectors = self.search.vectors
        self.beta = beta
        self.no_guarantee: str | None = None
        self.size = n = len(self.vectors)
        self.norms = np.sqrt(np.einsum("vp,vp->v", self.vectors, self.vectors, dtype=np.float64))
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

    def gamma(self, epsilon: Floats) -> Floats:
        """The radius beyond which all words weigh the same, in embedding units."""
        return truncation(epsilon, self.beta, len(self.vectors))

    def distance(self, first: Ids, second: Ids) -> Floats:
        """The distance d of n pairs of ids, shape (n,)."""
        return pair_distances(self.vectors, first, second)

    def log_pmf(self, ids: Ids, epsilon: Floats) -> Floats:
        """Log probabilities ln Pr[M(w) = u] for each of n ids and every word u, shape (n, V)."""
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
        check_epsilon(epsilon)
        return draw_words(len(epsilon), KEY_WORDS, rng)

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Draw from the law with each token's own stream."""
        gamma = self.gamma(epsilon)
        plain = self.plain(ids, epsilon)
        self._list(ids[~plain])
        out = np.full(len(ids), -1, dtype=np.int64)
        self._draw(ids, epsilon, gamma, noise, plain, out)
        left = out < 0
        if left.any():
            self._list(ids[left])
            self._draw(ids, epsilon, gamma, noise, plain, out)
        return out

    def plain(self, ids: Ids, epsilon: Floats) -> Flags:
        """Whether the tokens are drawn without lists: a matter of word and epsilon, so never of the batch. Shape (n,).

        Lists are for the words whose uniform proposals would take longer, by the weight at the mean distance. A list
        serves all tokens of its word; how many there are is guessed by Zipf's law, as words are numbered by falling
        frequency where word2vec made them. A wrong guess costs time alone.
        """
        new = np.unique(ids)
        new = new[np.isnan(self._mean_distance[new])]
        pairs = np.repeat(new, len(self._sample)), np.tile(self._sample, len(new))
        self._mean_distance[new] = pair_distances(self.vectors, *pairs).reshape(-1, SAMPLE).mean(axis=1)
        weight = np.exp(-epsilon / 2 * np.minimum(self._mean_distance[ids], self.gamma(epsilon)))
        n_words, dimensions = self.vectors.shape
        proposals = DRAW + (n_words * dimensions / LIST + MEASURE) * (ids + 1) * math.log(n_words + 1) / TOKENS
        enough: Flags = weight * proposals >= 1
        return enough

    def _draw(self, ids: Ids, epsilon: Floats, gamma: Floats, noise: Words, plain: Flags, out: Ids) -> None:
        _draw(
            self.vectors,
            self.norms,
            self.members,
            self.bounds,
            self.shells,
            self.listed,
            ids,
            epsilon,
            gamma,
            noise,
            plain,
            out,
        )

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


@numba.njit(cache=True)
def _draw(
    vectors: Vectors,
    norms: Floats,
    members: Members,
    bounds: Floats,
    shells: Ids,
    listed: Flags,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
    plain: Flags,
    out: Ids,
) -> None:  # pragma: no cover - compiled
    """Draw every token whose ``out`` is -1; leave it -1 where a list is needed and not there."""
    n_words, n_shells = len(vectors), len(shells) - 1
    n_near = members.shape[1]
    beyond = n_words - n_near > 0
    state, block = np.empty(16, dtype=np.uint32), np.empty(16, dtype=np.uint32)
    envelope = np.empty(n_shells + 1)
    for token in range(len(ids)):
        if out[token] >= 0:
            continue
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        open_stream(state, keys[token])
        at = 16
        if plain[token]:
            for _ in range(ATTEMPTS):
                unit, at = next_unit(state, block, at)
                proposed = min(int(unit * n_words), n_words - 1)
                unit, at = next_unit(state, block, at)
                near, far = abs(norms[word] - norms[proposed]), norms[word] + norms[proposed]
                if _accepted(vectors, word, proposed, half, radius, 0.0, unit, near, far):
                    out[token] = proposed
                    break
            if out[token] >= 0:
                continue
        if not listed[word]:
            continue
        total = 0.0
        for shell in range(n_shells):
            size = shells[shell + 1] - shells[shell]
            envelope[shell] = size * math.exp(-half * min(bounds[word, shell], radius))
            total += envelope[shell]
        # Proposed among all words, so the near ones are proposed again there, and refused.
        envelope[n_shells] = n_words * math.exp(-half * min(bounds[word, n_shells], radius)) if beyond else 0.0
        total += envelope[n_shells]
        while out[token] < 0:
            unit, at = next_unit(state, block, at)
            left = unit * total
            shell = 0
            last = n_shells if beyond else n_shells - 1
            while shell < last and left >= envelope[shell]:
                left -= envelope[shell]
                shell += 1
            unit, at = next_unit(state, block, at)
            if shell < n_shells:
                size = shells[shell + 1] - shells[shell]
                proposed = int(members[word, shells[shell] + min(int(unit * size), size - 1)])
                near, far = bounds[word, shell], bounds[word, shell + 1]  # as the shells are nested
            else:
                proposed = min(int(unit * n_words), n_words - 1)
                near, far = abs(norms[word] - norms[proposed]), norms[word] + norms[proposed]
            floor = min(bounds[word, shell], radius)
            unit, at = next_unit(state, block, at)
            if _accepted(vectors, word, proposed, half, radius, floor, unit, near, far) and (
                shell < n_shells or not _among(members[word], proposed)
            ):
                out[token] = proposed


@numba.njit(cache=True)
def _accepted(
    vectors: Vectors,
    word: int,
    proposed: int,
    half: float,
    radius: float,
    floor: float,
    unit: float,
    near: float,
    far: float,
) -> bool:  # pragma: no cover - compiled
    """Whether ``unit`` is below exp(-half·(min(d, radius) - floor)), d the distance of the two words.

    ``near`` and ``far`` are bounds of d, up to rounding. Most often they decide it, and no vector need be fetched; with
    the margin left to them, they decide as d would.
    """
    if unit <= 0.0:
        return True
    limit = floor - math.log(unit) / half  # accepted, if min(d, radius) is less
    if min(far, radius) * (1 + MARGIN) < limit:
        return True
    if min(near, radius) * (1 - MARGIN) > limit:
        return False
    distance = math.sqrt(squared_distance(vectors[word], vectors[proposed]))
    return unit < math.exp(-half * (min(distance, radius) - floor))


@numba.njit(cache=True)
def _among(members: Members, word: int) -> bool:  # pragma: no cover - compiled
    for member in members:  # noqa: SIM110 - compiled
        if member == word:
            return True
    return False
