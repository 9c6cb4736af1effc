"""Claimed distribution and metric of each mechanism, implemented independently in plain float64.

The audit samples these distributions, or computes them, and compares them with the outputs of the
mechanisms. The code shares nothing with the code of the mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from scipy.special import gammaln, lambertw

from lexveil.base.types import Floats, Ids
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.mechanisms.base import PublicCounts

DISTANCES_AT_A_TIME = 20_000_000  # greatest number of distances in memory
TREE = 8  # dimensions up to which a tree finds the nearest word faster than a matrix product
ON_LISTS = ("diffractor_geometric", "diffractor_tem")
IN_CONTEXT = "tem_context"
EXPONENTIAL = ("tem", IN_CONTEXT)  # mechanisms with a base measure in addition to distances
CLOSED = (*EXPONENTIAL, *ON_LISTS)

# (n,) and (m,) ids -> (n, m) distances in the metric of the claim.
Distances = Callable[[Ids, Ids], Floats]


def euclidean(vectors: npt.NDArray[np.float32] | Floats) -> Distances:
    """Return the Euclidean metric between the rows. It is computed from coordinate differences, so
    that small distances keep their digits.
    """

    def distances(first: Ids, second: Ids) -> Floats:
        out = np.empty((len(first), len(second)))
        right = vectors[second].astype(np.float64)
        for i, row in enumerate(first.tolist()):
            difference = right - vectors[row].astype(np.float64)
            out[i] = np.sqrt(np.einsum("np,np->n", difference, difference))
        return out

    return distances


def spread(vectors: npt.NDArray[np.float32] | Floats, share: float) -> Floats:
    """Return λΣ + (1-λ)I, (p, p), where λ is ``share`` and Σ is the covariance of the rows scaled
    to trace p, or the identity if all rows are equal.
    """
    places = np.asarray(vectors, dtype=np.float64)
    p = places.shape[1]
    centred = places - places.mean(axis=0)
    covariance = centred.T @ centred
    trace = np.trace(covariance)
    scaled = covariance * (p / trace) if trace > 0 else np.eye(p)
    return np.asarray(share * scaled + (1 - share) * np.eye(p))


def mahalanobis(vectors: npt.NDArray[np.float32] | Floats, share: float) -> Distances:
    """Return the regularized Mahalanobis metric sqrt((φ-φ')ᵀ(λΣ+(1-λ)I)^{-1}(φ-φ')) between the
    rows, computed with a Cholesky root of the matrix. λ is ``share``.
    """
    root = np.linalg.cholesky(spread(vectors, share))
    return euclidean(np.linalg.solve(root, np.asarray(vectors, dtype=np.float64).T).T)


def on_lists(orders: Sequence[Sequence[int]] | npt.NDArray[np.int32]) -> Distances:
    """Return the metric of word lists: the largest difference between the positions of two words in
    any list. ``orders[l][i]`` is the word at position i of list l.
    """
    places = np.array([np.argsort(np.asarray(order)) for order in orders])

    def distances(first: Ids, second: Ids) -> Floats:
        gaps = np.abs(places[:, first][:, :, None] - places[:, second][:, None, :])
        return np.asarray(gaps.max(axis=0), dtype=np.float64)

    return distances


@dataclass(frozen=True)
class AuditedSpace:
    """Vocabulary on which an audit tests a mechanism: words with their vectors, lists and public
    counts.

    Attributes:
        vectors: (W, p) float64.
        orders: (n_lists, W) the word at each position of each list; None if no mechanism on lists
            is audited.
        public: the number of words in each token, and the token's counts in public text; None if
            each token is one word and there are no counts.
    """

    vectors: Floats
    orders: npt.NDArray[Any] | None = None
    public: PublicCounts | None = None
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Number of words, W."""
        return len(self.vectors)

    def nearest(self, points: Floats, k: int = 1) -> tuple[Ids, Floats]:
        """Return the k nearest words of each point and their distances, (n, k) each."""
        if self.vectors.shape[1] <= TREE:
            tree = self._kept.setdefault("tree", cKDTree(self.vectors))
            distances, near = tree.query(points, k=k)
            shape = (len(points), k)
            return np.asarray(near).reshape(shape).astype(np.int64), np.asarray(distances).reshape(
                shape
            )
        squares = (self.vectors**2).sum(axis=1)
        out = np.empty((len(points), k), dtype=np.int64)
        far = np.empty((len(points), k))
        step = max(1, DISTANCES_AT_A_TIME // self.size)
        for start in range(0, len(points), step):
            some = points[start : start + step]
            measured = squares - 2 * some @ self.vectors.T
            near = (
                np.argpartition(measured, min(k, self.size - 1), axis=1)[:, :k]
                if k < self.size
                else None
            )
            near = np.tile(np.arange(self.size), (len(some), 1)) if near is None else near
            exact = np.linalg.norm(some[:, None] - self.vectors[near], axis=2)
            order = np.argsort(exact, axis=1)
            out[start : start + step] = np.take_along_axis(near, order, axis=1)
            far[start : start + step] = np.take_along_axis(exact, order, axis=1)
        return out, far


@dataclass(frozen=True)
class Claim:
    """Output distribution that one mechanism claims over one vocabulary.

    Attributes:
        mechanism: name of the mechanism.
        own: parameters of the mechanism, with the names of params.yaml.
        rank_remap: parameters of the post-processing; None without post-processing.
        space: the words of the mechanism.
    """

    mechanism: str
    own: Mapping[str, Any]
    rank_remap: Mapping[str, Any] | None
    space: AuditedSpace

    @property
    def distances(self) -> Distances:
        """The claimed metric."""
        if self.mechanism in ON_LISTS:
            assert self.space.orders is not None
            return on_lists(self.space.orders)
        if self.mechanism == "mahalanobis":
            return mahalanobis(self.space.vectors, self.share)
        return euclidean(self.space.vectors)

    @property
    def share(self) -> float:
        """Parameter λ of the Mahalanobis mechanism, the weight of the covariance."""
        return float(self.own.get("lambda_", self.own.get("lambda", 0.2)))

    @property
    def closed(self) -> bool:
        """Whether the distribution of the mechanism has a closed form, which ``pmf`` computes."""
        return self.mechanism in CLOSED

    @property
    def in_context(self) -> bool:
        """Whether the distribution of the output depends on the output token before it."""
        return self.mechanism == IN_CONTEXT

    def base_measure(self, before: int = -1) -> Floats:
        """Return (W,) the base weight of each word as an output, before its distance to the input
        is considered.

        Args:
            before: the output token before the word; -1 if the word begins the text.
        """
        public = self.space.public
        if public is None or self.mechanism not in EXPONENTIAL:
            return np.ones(self.space.size)
        if self.in_context and self.own.get("model", "bigrams") != "bigrams":
            return self._by_model(public, before)
        if not self.in_context or public.bigrams is None:
            return self._halved(public)
        single, after = self._whole_numbers(public, public.bigrams)
        row = (
            slice(*public.bigrams.starts[before : before + 2].tolist()) if before >= 0 else slice(0)
        )
        weight = single.copy()
        weight[public.bigrams.ids[row]] += after[row]
        return weight

    def _by_model(self, public: PublicCounts, before: int) -> Floats:
        """Return (W,) integer base weights of the words by a language model.

        The weight of a word is the length penalty times the κ-th power of a probability: the
        probability of the word's first piece after the single token ``before``, times the word's
        share among the words with that first piece.
        """
        candidates = self.space._kept
        kappa = self.own.get("kappa", 1.0)
        words = public.causal
        assert words is not None
        if (key := f"after {before}, {self._measure}") not in candidates:
            if "model" not in candidates:
                law = words.make()
                candidates["model"] = law, law.pieces([token.split("_") for token in words.tokens])
            model, pieces = candidates["model"]
            states = model.begin(1, 1)
            for piece in pieces[before] if before >= 0 else ():
                states.read(np.array([[piece]]), np.ones((1, 1), dtype=bool))
            first = np.array([pieces[row][0] for row in words.rows.tolist()])
            share = (public.counts + 1) / np.bincount(first, public.counts + 1)[first]
            says = np.asarray(
                states.next_pieces(np.zeros(1, dtype=np.int64))[0, 0], dtype=np.float64
            )
            weight = self._halved(public) * (says[first] * share) ** kappa
            candidates[key] = np.maximum(
                1, np.rint(weight * ((2.0**31 - 2 * len(weight)) / (weight.sum() * (1 + 1e-9))))
            )
        return np.asarray(candidates[key])

    @property
    def _measure(self) -> str:
        """Cache key of the base weights: the parameters on which the weights depend besides the
        words.
        """
        return ", ".join(
            f"{name} {self.own.get(name)}" for name in ("kappa", "length_penalty", "common_words")
        )

    def _halved(self, public: PublicCounts) -> Floats:
        """Return (W,) factors of the base weights, which combine the penalties for long and for
        uncommon words.
        """
        halved = 0.5 ** (self.own.get("length_penalty", 3) * (public.n_words - 1))
        if (common := self.own.get("common_words")) is not None:
            rank = np.lexsort((np.arange(len(halved)), -public.counts)).argsort()
            halved = np.where(rank < common, halved, halved / 2**20)
        return np.asarray(halved)

    def _whole_numbers(self, public: PublicCounts, bigrams: Bigrams) -> tuple[Floats, Floats]:
        """Return the integer base weights of the mechanism tem_context: the weight of each word,
        (W,), and the additional weight of each bigram's second word after its first, (E,).

        The weights are Witten and Bell's interpolation to the power κ. The weights after a token
        are divided by the part of the probability that follows the frequency of words after this
        token; they are rounded so that no sum exceeds 2^31.
        """
        kappa = self.own.get("kappa", 1.0)
        counts = public.counts
        if (key := self._measure) not in self.space._kept:
            halved = self._halved(public)
            share = (counts + 1) / (counts + 1).sum()
            seen = np.diff(bigrams.starts)
            single = halved * share**kappa
            among = share[bigrams.ids]
            after = halved[bigrams.ids] * (
                (among + bigrams.counts / np.repeat(seen, seen)) ** kappa - among**kappa
            )
            sums = np.bincount(np.repeat(np.arange(len(seen)), seen), after)
            unit = (2.0**31 - 2 * len(single)) / ((single.sum() + sums.max(initial=0)) * (1 + 1e-9))
            self.space._kept[key] = np.maximum(np.rint(unit * single), 1), np.rint(unit * after)
        single, after = self.space._kept[key]
        return single, after

    def unknown(self, before: int = -1) -> Floats:
        """Return (W,) probabilities of the replacements of a word without a vector.

        Args:
            before: as in ``base_measure``.
        """
        return _normalized(
            self.base_measure(before) if self.in_context else np.ones(self.space.size)
        )

    def pmf(self, word: int, epsilon: float, before: int = -1) -> Floats:
        """Return (W,) the closed-form probability Pr[M(word) = y] of every output word y.

        Args:
            before: as in ``base_measure``.
        """
        w = self.space.size
        if self.mechanism in EXPONENTIAL:
            gap = self.distances(np.array([word]), np.arange(w))[0]
            mass = _exponential(
                np.minimum(gap, _gamma(w, epsilon, self.own.get("beta", 0.001))), epsilon
            )
            return _normalized(mass * self.base_measure(before))
        assert self.space.orders is not None
        out = np.zeros(w)
        for order in self.space.orders:
            at = int(np.flatnonzero(order == word)[0])
            gap = np.abs(np.arange(w) - at).astype(np.float64)
            if self.mechanism == "diffractor_tem":
                by_place = _exponential(
                    np.minimum(gap, _gamma(w, epsilon, self.own.get("beta", 0.001))), epsilon
                )
            else:
                by_place = np.tanh(epsilon / 2) * np.exp(-epsilon * gap)
                by_place[[0, -1]] = np.exp(-epsilon * gap[[0, -1]]) / (1 + np.exp(-epsilon))
                by_place = np.ones(1) if w == 1 else by_place
            out[order] += by_place / len(self.space.orders)
        return out

    def counts(self, word: int, epsilon: float, n: int, rng: np.random.Generator) -> Ids:
        """Return (W,) how often each word occurs among n outputs of M(word) that the audit draws
        itself.
        """
        return np.bincount(self.draw(word, epsilon, n, rng), minlength=self.space.size).astype(
            np.int64
        )

    def mass(
        self, word: int, epsilon: float, n: int, rng: np.random.Generator, before: int = -1
    ) -> Floats:
        """Return (W,) the probability Pr[M(word) = y] of every output word y. If there is no closed
        form, it is estimated from n draws.
        """
        return (
            self.pmf(word, epsilon, before)
            if self.closed
            else self.counts(word, epsilon, n, rng) / n
        )

    def draw(self, word: int, epsilon: float, n: int, rng: np.random.Generator) -> Ids:
        """Draw n outputs of M(word), (n,) ids."""
        if self.closed:
            return rng.choice(self.space.size, size=n, p=_normalized(self.pmf(word, epsilon)))
        if self.mechanism == "truncated_gumbel":
            return self._gumbel(word, epsilon, n, rng)
        p = self.space.vectors.shape[1]
        ball = rng.standard_normal((n, p))
        ball *= (rng.standard_gamma(p, n) / epsilon / np.linalg.norm(ball, axis=1))[:, None]
        if self.mechanism == "mahalanobis":
            ball = ball @ np.linalg.cholesky(spread(self.space.vectors, self.share)).T
        points = self.space.vectors[word] + ball
        near = (
            self._vickrey(word, points, rng)
            if self.mechanism == "vickrey"
            else self.space.nearest(points)[0][:, 0]
        )
        if self.rank_remap is None:
            return near
        ranks = min(int(self.rank_remap["ranks"]), self.space.size)
        weight = np.exp(-self.rank_remap["c"] * epsilon * np.arange(ranks))
        rank = rng.choice(ranks, size=n, p=weight / weight.sum())
        kinds, back = np.unique(near, return_inverse=True)
        return self.space.nearest(self.space.vectors[kinds], ranks)[0][back, rank]

    def _vickrey(self, word: int, points: Floats, rng: np.random.Generator) -> Ids:
        t = np.atleast_1d(self.own.get("t", 0.75))
        k = int(self.own.get("k", 2))
        excluded = bool(self.own.get("exclude_input", False))
        near, far = self.space.nearest(points, k + excluded)
        if excluded:
            keep = near != word
            keep[keep.all(axis=1), -1] = False
            near = near[keep].reshape(-1, k)
            far = far[keep].reshape(-1, k)
        if len(t) == 1:
            stay = (1 - t[0]) * far[:, 1]
            whole = t[0] * far[:, 0] + stay
            first = np.divide(stay, whole, out=np.full(len(stay), 1 - t[0]), where=whole > 0)
            return np.where(rng.random(len(near)) < first, near[:, 0], near[:, 1])
        weight = -t * far - np.log(-np.log(rng.random(far.shape)))
        return np.asarray(near[np.arange(len(near)), weight.argmax(axis=1)])

    def _gumbel(self, word: int, epsilon: float, n: int, rng: np.random.Generator) -> Ids:
        w = self.space.size
        if "extent" not in self.space._kept:
            gaps = euclidean(self.space.vectors)(np.arange(w), np.arange(w))[~np.eye(w, dtype=bool)]
            self.space._kept["extent"] = float(gaps.min()), float(gaps.max())
        low, high = self.space._kept["extent"]
        a = (epsilon - 2 * (1 + np.log(w)) / low) / 3
        b = 2000 * high
        if a * low > 1:
            b = min(b, 2 * high / min(float(lambertw(2 * a * high).real), float(np.log(a * low))))
        k = np.arange(1, w + 1)
        sizes = k * np.log(np.log(w)) - gammaln(k + 1)
        k = rng.choice(k, size=n, p=_normalized(np.exp(sizes - sizes.max())))
        most = int(k.max())
        near, far = self.space.nearest(self.space.vectors[[word]], most)
        # ln F(x) = -exp(-x/b), where F is the distribution function; F(x) is uniform between
        # F(-high) and F(high).
        bottom = -np.exp(high / b)
        top = -np.exp(-high / b)
        log_f = top + np.log1p(-rng.random((n, most)) * -np.expm1(bottom - top))
        noisy = far + np.clip(-b * np.log(-log_f), -high, high)
        noisy[np.arange(most) >= k[:, None]] = np.inf
        return np.asarray(near[0][noisy.argmin(axis=1)])


def _gamma(n: int, epsilon: float, beta: float) -> float:
    """Return the truncation radius γ of TEM (the truncated exponential mechanism), Theorem 4.2."""
    return max(0.0, 2 / epsilon * float(np.log((1 - beta) * (n - 1) / beta))) if n > 1 else 0.0


def _exponential(gap: Floats, epsilon: float) -> Floats:
    return _normalized(np.exp(-epsilon / 2 * (gap - gap.min())))


def _normalized(weight: Floats) -> Floats:
    return np.asarray(weight / weight.sum())
