"""1-Diffractor: noise on a word's place in a list, where neighbours stand side by side."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from lexveil.errors import ParameterError
from lexveil.mechanisms.base import BaseMechanism, register
from lexveil.mechanisms.preconditions import check_epsilon
from lexveil.mechanisms.tem import truncation
from lexveil.parameters import Section
from lexveil.types import Floats, Ids, Orders, Words

CHUNK = 16_384  # tokens at a time, so that what belongs to them stays in the cache
DIGITS = 70  # decimal digits beyond those of the uniform number
GUARD = 40  # of them given away to rounding


class DiffractorGeometricParameters(Section):
    """Parameters of diffractor_geometric; the lists are those that it is built over."""

    lists: Literal["L0", "L1", "L2"] = Field("L0", description="one of word_orders.sets")


class DiffractorTemParameters(DiffractorGeometricParameters):
    """Parameters of diffractor_tem."""

    beta: float = Field(0.001, ge=1e-12, lt=1, description="as of tem")


class _OnLists(BaseMechanism):
    """What both mechanisms share: lists, and the choice among them.

    One list is drawn uniformly, independent of the word, and the word is perturbed in it, once. That has the law of
    "perturb in each list and publish one of the results at random". Pr[M(w)=y] is the mean over the lists, each of
    which is private with respect to its own d_l(w,w') = |index_l(w) - index_l(w')|, so ε·max_l d_l holds.

    Attributes:
        orders: (n_lists, W) int32, the word at each index of each list; all are permutations of the same W words.
        places: (n_lists, W) int32, the index of each word in each list.
    """

    metric: ClassVar[str] = "largest difference of the words' indexes over the lists"
    guarantee: ClassVar[str] = "Pr[M(w)=y] <= exp(ε·max_l|i_l(w)-i_l(w')|)·Pr[M(w')=y]"
    unit: ClassVar[str] = "list position"
    on_lists: ClassVar[bool] = True

    def __init__(self, orders: Sequence[Orders] | Orders) -> None:
        self.orders = np.ascontiguousarray(np.atleast_2d(np.asarray(orders)), dtype=np.int32)
        if not self.orders.size:
            raise ParameterError("a list needs at least one word")
        self.size = self.orders.shape[1]
        every = np.arange(self.size, dtype=np.int32)
        if not (np.sort(self.orders, axis=1) == every).all():
            raise ParameterError("each list must hold every word of the working vocabulary exactly once")
        self.places = np.empty_like(self.orders)
        np.put_along_axis(self.places, self.orders, every[None], axis=1)

    def distance(self, first: Ids, second: Ids) -> Floats:
        """max_l |index_l(w) - index_l(w')| of n pairs of ids, shape (n,)."""
        gap: Floats = np.abs(self.places[:, first] - self.places[:, second]).max(axis=0).astype(np.float64)
        return gap

    def log_pmf(self, ids: Ids, epsilon: Floats) -> Floats:
        """Log probabilities ln Pr[M(w) = u] for each of n ids and every word u, shape (n, W)."""
        check_epsilon(epsilon)
        total = np.full((len(ids), self.size), -np.inf)
        for places in self.places:
            by_index = self.log_pmf_index(places[ids].astype(np.int64), epsilon)
            total = np.logaddexp(total, by_index[:, places])
        total -= np.log(len(self.places))
        return total

    def log_pmf_index(self, index: Ids, epsilon: Floats) -> Floats:
        """The same law on the indexes of one list, shape (n, W)."""
        raise NotImplementedError

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Words:
        """Draw two uniform 64-bit words a token, (n, 2).

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        from lexveil.mechanisms.noise.keystream import draw_words

        check_epsilon(epsilon)
        return draw_words(len(epsilon), 2, rng)

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Perturb each word in the list its noise chooses."""
        out = np.empty(len(ids), dtype=np.int64)
        n_lists = len(self.orders)
        for start in range(0, len(ids), CHUNK):
            chunk = slice(start, start + CHUNK)
            words = noise[chunk]
            if n_lists == 1:
                index = self.perturb(self.places[0][ids[chunk]].astype(np.int64), epsilon[chunk], words)
                out[chunk] = self.orders[0][index]
            else:
                # Equal chances up to 2^-32; they depend on no word, so the guarantee does not rest on them.
                which = (((words[:, 1] >> np.uint64(32)) * np.uint64(n_lists)) >> np.uint64(32)).astype(np.int64)
                index = self.perturb(self.places[which, ids[chunk]].astype(np.int64), epsilon[chunk], words)
                out[chunk] = self.orders[which, index]
        return out

    def perturb(self, index: Ids, epsilon: Floats, words: Words) -> Ids:
        """The new index of each of n indexes."""
        raise NotImplementedError


@register
class DiffractorGeometric(_OnLists):
    """Add two-sided geometric noise to the index, Pr[X=x] = (e^ε-1)/(e^ε+1)·e^{-ε|x|}, and clip to [0, W-1].

    Source: Meisenbacher et al. (2024), 1-Diffractor, 1-D_G. Without clipping Pr[X=0] = tanh(ε/2).

    Privacy: ε·|i-j| for one list, since e^{-ε|x|} changes by at most e^ε a step; clipping is post-processing.

    Exact on integers: the index is decided by inverse CDF from a uniform number of as many bits as it takes, see
    ``settle``. No probability is rounded, however small.
    """

    name: ClassVar[str] = "diffractor_geometric"
    exactness: ClassVar[str] = "the new index is drawn exactly, on integers"
    Parameters: ClassVar[type[Section]] = DiffractorGeometricParameters

    def __init__(self, orders: Sequence[Orders] | Orders, **parameters: Any) -> None:
        self.checked(DiffractorGeometricParameters, parameters)
        super().__init__(orders)

    def log_pmf_index(self, index: Ids, epsilon: Floats) -> Floats:
        """The law on the indexes of one list, shape (n, W)."""
        if self.size == 1:
            return np.zeros((len(index), 1))
        steps = np.abs(np.arange(self.size) - index[:, None])
        inside = np.log(-np.expm1(-epsilon)) - np.log1p(np.exp(-epsilon))
        law: Floats = inside[:, None] - epsilon[:, None] * steps
        for end in (0, self.size - 1):  # what would fall beyond an end falls on it
            law[:, end] = -epsilon * steps[:, end] - np.log1p(np.exp(-epsilon))
        return law

    def perturb(self, index: Ids, epsilon: Floats, words: Words) -> Ids:
        """Add the noise and clip."""
        from lexveil.mechanisms.kernels.diffractor import geometric

        moved, doubt = np.empty_like(index), np.zeros(len(index), dtype=np.bool_)
        geometric(index, epsilon, words, self.size, moved, doubt)
        for token in np.flatnonzero(doubt):
            size = geometric_size(words[token], float(epsilon[token]), self.size)
            moved[token] = index[token] - size if int(words[token, 0]) & 1 else index[token] + size
        clipped: Ids = np.clip(moved, 0, self.size - 1, out=moved)
        return clipped


def geometric_size(words: Words, epsilon: float, limit: int) -> int:
    """|X| of two-sided geometric noise, cut at ``limit``, exactly.

    |X| is the largest m with U < Pr[|X| >= m] = 2·e^{-εm}/(1 + e^{-ε}), U the uniform number. The last bit of the first
    word is the sign and no part of it.
    """
    return settle(partial(_geometric_at, epsilon=epsilon, limit=limit), words, shift=1)


def _geometric_at(uniform: Decimal, epsilon: float, limit: int) -> int:
    """|X| at a uniform number in [0, 1], cut at ``limit``."""
    if uniform <= 0:
        return limit
    e = Decimal(epsilon)
    level = (Decimal(2).ln() - (1 + (-e).exp()).ln() - uniform.ln()) / e
    return int(min(max(level, Decimal(0)), Decimal(limit)))


@register
class DiffractorTem(_OnLists):
    """TEM on the index: replace index i by j with probability proportional to exp(-ε·min(|i-j|, γ)/2).

    γ = (2/ε)·ln((1-β)(W-1)/β), not rounded. Source: Meisenbacher et al. (2024), 1-D_T; Carvalho et al. (2023).

    Privacy: ε·|i-j| for one list, as TEM with d = |i-j|.

    A sum of geometric series, so the index is decided by inverse CDF in a fixed number of operations, exact on integers
    with as many bits of the uniform number as it takes, see ``settle``. γ itself is a float64.

    Attributes:
        beta: in (0, 1); at most this is the chance of an index farther than γ.
    """

    name: ClassVar[str] = "diffractor_tem"
    exactness: ClassVar[str] = "the new index is drawn exactly, on integers; its radius γ is a float64"
    Parameters: ClassVar[type[Section]] = DiffractorTemParameters

    def __init__(self, orders: Sequence[Orders] | Orders, **parameters: Any) -> None:
        self.beta = self.checked(DiffractorTemParameters, parameters).beta
        super().__init__(orders)

    def log_pmf_index(self, index: Ids, epsilon: Floats) -> Floats:
        """The law on the indexes of one list, shape (n, W)."""
        steps = np.abs(np.arange(self.size) - index[:, None])
        gamma = truncation(epsilon, self.beta, self.size)
        log_weight: Floats = -epsilon[:, None] / 2 * np.minimum(steps, gamma[:, None])
        log_weight -= np.logaddexp.reduce(log_weight, axis=1, keepdims=True)
        return log_weight

    def perturb(self, index: Ids, epsilon: Floats, words: Words) -> Ids:
        """Draw the new index."""
        from lexveil.mechanisms.kernels.diffractor import truncated_exponential

        gamma = truncation(epsilon, self.beta, self.size)
        far = min(1.0, self.beta / ((1 - self.beta) * max(self.size - 1, 1)))
        moved, doubt = np.empty_like(index), np.zeros(len(index), dtype=np.bool_)
        truncated_exponential(index, epsilon, gamma, far, self.size, words, moved, doubt)
        for token in np.flatnonzero(doubt):
            radius = int(min(gamma[token], float(self.size)))
            at, e = int(index[token]), float(epsilon[token])
            moved[token] = settle(partial(self._at, index=at, epsilon=e, radius=radius), words[token])
        return moved

    def _at(self, uniform: Decimal, index: int, epsilon: float, radius: int) -> int:
        """The new index at a uniform number in [0, 1]; the indexes run as in the kernel."""
        left, right = min(index, radius), min(self.size - 1 - index, radius)
        half, beta = Decimal(epsilon) / 2, Decimal(self.beta)
        q = (-half).exp()
        far = min(Decimal(1), beta / ((1 - beta) * max(self.size - 1, 1)))
        ratio = q / (1 - q)
        sums = [(1 - (-half * n).exp()) * ratio for n in (right, left)]
        outside = self.size - 1 - left - right
        place = uniform * (1 + sum(sums) + outside * far)
        if place < 1:
            return index
        place -= 1
        for sign, n, total in ((1, right, sums[0]), (-1, left, sums[1])):
            if place < total:
                level = int(-(1 - place / ratio).ln() / half)
                return index + sign * (1 + min(max(level, 0), n - 1))
            place -= total
        if not outside:
            return index - left if left else index + right  # only the upper end of the last interval
        step = min(int(place / far), outside - 1)
        return int(step if step < index - left else step + left + right + 1)


def settle(answer: Callable[[Decimal], int], words: Words, shift: int = 0) -> int:
    """The answer at a uniform number of which ``words`` (2,) are the first bits, exactly.

    The number's bits are those of the first word, without the last ``shift``, and then as many as it takes from the
    stream keyed by both words. ``answer`` is a step function; both ends of the interval that is left are tried, at a
    precision far beyond its length, until they agree.
    """
    from lexveil.mechanisms.noise.keystream import expand

    bits, known = 64 - shift, int(words[0]) >> shift
    key = np.array([words[0], words[1], 0, 0], dtype=np.uint64)
    more = 0
    while True:
        with decimal.localcontext() as context:
            context.prec = int(bits * 0.302) + DIGITS
            unit = Decimal(2) ** bits
            # Wider by far more than the rounding of what ``answer`` computes.
            margin = Decimal(10) ** -(context.prec - GUARD)
            low, high = Decimal(known) / unit * (1 - margin), Decimal(known + 1) / unit * (1 + margin)
            low, high = max(low, Decimal(0)), min(high, Decimal(1))
            ends = answer(low), answer(high)
        if ends[0] == ends[1]:
            return ends[0]
        more += 16
        tail = expand(key, more)
        known = (int(words[0]) >> shift) << (8 * more) | int.from_bytes(tail, "big")
        bits = 64 - shift + 8 * more
