"""TEM, the Truncated Exponential Mechanism: near words by their distance, all words beyond γ alike."""

from __future__ import annotations

import math
from typing import ClassVar

import numba
import numpy as np
import numpy.typing as npt

from lexveil.embeddings.exact_search import ExactSearch, distance_rows, pair_distances, squared_distance_of_rows
from lexveil.embeddings.sketch import Sketch, prefetch, sketch_bounds
from lexveil.mechanisms.noise.keystream import KEY_WORDS, UNITS, Words, draw_words, next_units, open_stream
from lexveil.mechanisms.preconditions import check_epsilon, check_range
from lexveil.types import Flags, Floats, Ids, Steps, Vectors

Members = npt.NDArray[np.int32]
Bounds = npt.NDArray[np.float32]

LARGEST = 256  # near words listed of each word
MEMBERS = 32_000_000  # places in the lists of all words together: 128 MB at most
# A draw from a word's list takes as long as so many proposals; making the list as long as V·p / LIST + MEASURE.
DRAW = 16
LIST, MEASURE = 1500, 2000
# A draw from clusters takes as long as so many uniform proposals; measuring them, as long as CLUSTERS_MEASURE.
CLUSTERS, CLUSTERS_MEASURE = 8, 400
TOKENS = 1_000_000  # of a text, among which a list must pay
ATTEMPTS = 2048  # of them per token; a word that is far from all others goes on with its near words
LOG2_E = math.log2(math.e)
MARGIN = 1e-9  # of a bound, far more than rounding
SAMPLE = 32  # words that say how far a word is from all others, on average


class Tem:
    """Replace w by u with probability proportional to exp(-ε·min(d(w,u), γ)/2), γ = (2/ε)·ln((1-β)(V-1)/β).

    Source: Carvalho et al. (2023), Algorithms 2 and 3; γ from Theorem 4.2, neither rounded nor taken from the data.
    The paper draws a near word or ⊥ ("elsewhere") by Gumbel noise; summing the two cases gives the law above, and any
    exact sampler of it is the same mechanism.

    Privacy: ε·d metric DP with d the Euclidean distance. When w becomes w', min(d, γ) moves by at most d(w,w')
    (triangle inequality), the weights by at most exp(ε·d/2), and so does their sum.

    Sampling is by rejection, exact for any envelope. The vocabulary is cut into clusters; a cluster has the weight of a
    lower bound of the distance to its words, and the word itself is a cluster of its own. A uniform member of the
    chosen cluster is accepted by the ratio of its own weight; if bounds of the distance decide that, it is not
    measured. Where uniform proposals are accepted often enough, all words are one cluster; where clusters would need
    too many, they are shells of the exact nearest words, of 1, 1, 2, 4, 8, … words, and all others. In float64:
    distances and weights to a few units in the last place, uniform numbers of 53 bits, so that a probability is right
    to a relative 1e-7, or an absolute 1e-15 if that is more.

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
        sketch = self.sketch
        sketch.measure(ids[~plain])
        out = _draw_by_sketch(
            self.vectors,
            sketch.rows,
            sketch.step,
            sketch.order,
            sketch.place,
            sketch.ends,
            sketch.nearest,
            self._mean_distance,
            self._proposals,
            ids,
            epsilon,
            gamma,
            noise,
            plain,
            ATTEMPTS,
        )
        left = np.flatnonzero(out < 0)
        if len(left):
            self._list(ids[left])
            out[left] = _draw_from_lists(
                self.vectors,
                sketch.rows,
                sketch.step,
                sketch.place,
                self.members,
                self.bounds,
                self.shells,
                ids[left],
                epsilon[left],
                gamma[left],
                noise[left],
            )
        return out

    def plain(self, ids: Ids, epsilon: Floats) -> Flags:
        """Whether the tokens are drawn by uniform proposals: a matter of word and ε, so never of the batch. Shape (n,).

        By the weight at the mean distance: those for which clusters would take longer.
        """
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


@numba.njit(cache=True)
def _draw_by_sketch(
    vectors: Vectors,
    rows: Steps,
    length: float,
    order: Members,
    place: Members,
    ends: Ids,
    nearest: Bounds,
    mean_distance: Floats,
    proposals: Floats,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
    plain: Flags,
    attempts: int,
) -> Ids:  # pragma: no cover - compiled
    """Draw by uniform proposals, where ``plain``, or by clusters; -1 where a list is quicker or attempts ran out."""
    n_words, n_clusters = len(vectors), len(ends) - 1
    state, units = np.empty(16, dtype=np.uint32), np.empty(UNITS)
    # A float64's bits, read as an integer, grow as the logarithm but for straight lines between powers of two, which
    # lie above 2^x: an envelope that is at most 6 % too large, and quick.
    bits = np.empty(n_clusters, dtype=np.int64)
    half_way = 1  # of a search among a power of two of edges
    while 2 * half_way < n_clusters:
        half_way *= 2
    edges = np.full(2 * half_way, np.inf)
    weights = bits.view(np.float64)
    out = np.full(len(ids), -1)
    for token in range(len(ids)):
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        own = place[word]
        total = 0.0
        if not plain[token]:
            for c in range(n_clusters):
                power = max(-half * LOG2_E * min(np.float64(nearest[word, c]), radius), -1000.0)
                bits[c] = np.int64((power + 1023.0) * 2.0**52)
            total = 1.0  # the word itself
            for c in range(n_clusters):
                total += (ends[c + 1] - ends[c]) * weights[c]
                edges[c] = total
            if total > proposals[word] * (1 + n_words * math.exp(-half * min(mean_distance[word], radius))):
                continue
        open_stream(state, keys, token, 0)
        at = UNITS
        before, limit_before = -1, 0.0
        for _ in range(attempts):
            if at > UNITS - 3:  # of which a proposal takes up to three
                next_units(state, units)
                at = 0
            if plain[token]:
                there = min(int(units[at] * n_words), n_words - 1)
                limit = -math.log(units[at + 1]) / half if units[at + 1] > 0 else np.inf
            elif units[at] * total < 1:
                there, limit = own, np.inf
            else:
                c, step = 0, half_way
                while step:  # without a branch to guess
                    c += step * (edges[c + step - 1] <= units[at] * total)
                    step //= 2
                c = min(c, n_clusters - 1)
                size = ends[c + 1] - ends[c]
                there = ends[c] + min(int(units[at + 1] * size), size - 1)
                limit = -(math.log(weights[c]) + math.log(units[at + 2])) / half if units[at + 2] > 0 else np.inf
                if there == own:
                    limit = -np.inf
            at += 3
            # Decide on the proposal before this one, while the memory of this one is on its way.
            prefetch(rows, there)  # type: ignore[call-arg]
            if before >= 0:
                near, far = sketch_bounds(rows, length, own, before)
                if _accepted(vectors, word, order[before], radius, limit_before, near, far):
                    out[token] = order[before]
                    break
            before, limit_before = there, limit
    return out


@numba.njit(cache=True)
def _draw_from_lists(
    vectors: Vectors,
    rows: Steps,
    length: float,
    place: Members,
    members: Members,
    bounds: Floats,
    shells: Ids,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
) -> Ids:  # pragma: no cover - compiled
    """Draw by shells of the nearest words, and all others."""
    n_words, n_shells, n_near = len(vectors), len(shells) - 1, members.shape[1]
    beyond = n_words - n_near > 0
    state, units = np.empty(16, dtype=np.uint32), np.empty(UNITS)
    envelope = np.empty(n_shells + 1)
    out = np.full(len(ids), -1)
    for token in range(len(ids)):
        word, half, radius = ids[token], epsilon[token] / 2, gamma[token]
        open_stream(state, keys, token, 1)
        at = UNITS
        total = 0.0
        for shell in range(n_shells):
            size = shells[shell + 1] - shells[shell]
            envelope[shell] = size * math.exp(-half * min(bounds[word, shell], radius))
            total += envelope[shell]
        # Proposed among all words, so the near ones are proposed again there, and refused.
        envelope[n_shells] = n_words * math.exp(-half * min(bounds[word, n_shells], radius)) if beyond else 0.0
        total += envelope[n_shells]
        while out[token] < 0:
            if at > UNITS - 3:
                next_units(state, units)
                at = 0
            unit = units[at]
            at += 1
            left = unit * total
            shell = 0
            last = n_shells if beyond else n_shells - 1
            while shell < last and left >= envelope[shell]:
                left -= envelope[shell]
                shell += 1
            unit = units[at]
            at += 1
            if shell < n_shells:
                size = shells[shell + 1] - shells[shell]
                proposed = int(members[word, shells[shell] + min(int(unit * size), size - 1)])
                near, far = bounds[word, shell], bounds[word, shell + 1]  # as the shells are nested
            else:
                proposed = min(int(unit * n_words), n_words - 1)
                near, far = sketch_bounds(rows, length, place[word], place[proposed])
            unit = units[at]
            at += 1
            limit = min(bounds[word, shell], radius) - math.log(unit) / half if unit > 0 else np.inf
            if _accepted(vectors, word, proposed, radius, limit, near, far) and (
                shell < n_shells or not _among(members, word, proposed)
            ):
                out[token] = proposed
    return out


@numba.njit(cache=True)
def _accepted(
    vectors: Vectors, word: int, proposed: int, radius: float, limit: float, near: float, far: float
) -> bool:  # pragma: no cover - compiled
    """Whether min(d, radius) is below the limit, d the distance of the two words.

    A proposal is accepted if a uniform number u is below exp(-half·(min(d, radius) - floor)), half = ε/2, where the
    envelope is exp(-half·floor): if min(d, radius) is below the limit floor - ln(u)/half. ``near`` and ``far`` are
    bounds of d, up to rounding. Most often they decide it, and no vector need be fetched; with the margin left to
    them, they decide as d would.
    """
    if min(far, radius) * (1 + MARGIN) < limit:
        return True
    if min(near, radius) * (1 - MARGIN) > limit:
        return False
    return min(math.sqrt(squared_distance_of_rows(vectors, word, proposed)), radius) < limit


@numba.njit(cache=True)
def _among(members: Members, row: int, word: int) -> bool:  # pragma: no cover - compiled
    for place in range(members.shape[1]):  # noqa: SIM110 - compiled
        if members[row, place] == word:
            return True
    return False
