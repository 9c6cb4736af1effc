"""Base class of the 1-Diffractor mechanisms, which add noise to a word's position in a list.
Similar words are neighbours in a list.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from lexveil.base.errors import ParameterError
from lexveil.base.parameters import Section
from lexveil.base.types import Floats, Ids, Orders, Words
from lexveil.core.mechanisms.base import Mechanism, Space, check_epsilon

CHUNK = 16_384  # tokens per block, so that their data stay in the cache
MORE_DIGITS = 70  # decimal digits beyond those of the uniform number
GUARD = 40  # number of these digits that are reserved for rounding errors


class OnListsParameters(Section):
    """Parameter of the mechanisms on word lists: the name of the list set."""

    lists: Literal["L0", "L1", "L2"] = Field("L0", description="one of word_orders.sets")


class OnLists(Mechanism):
    """Base class of mechanisms over word lists. The mechanism draws a list, and perturbs the
    position of the word in this list.

    One list is drawn uniformly, independent of the word, and the word is perturbed once, in this
    list. The result has the same distribution as "perturb in each list and publish one of the
    results at random". Pr[M(w)=y] is the mean over the lists. Each list is private with respect to
    its own distance d_l(w,w') = |index_l(w) - index_l(w')|, so the mean satisfies ε·max_l d_l.

    Attributes:
        orders: (n_lists, W) int32, the word at each index of each list; all are permutations of the
            same W words.
        places: (n_lists, W) int32, the index of each word in each list.
    """

    metric = "largest difference of the words' indexes over the lists"
    guarantee = "Pr[M(w)=y] <= exp(ε·max_l|i_l(w)-i_l(w')|)·Pr[M(w')=y]"
    unit = "list position"
    law = "lists"
    has_few_sources = True
    may_lack_words = True
    Parameters: ClassVar[type[Section]] = OnListsParameters

    def __init__(self, orders: Sequence[Orders] | Orders) -> None:
        self.orders = np.ascontiguousarray(np.atleast_2d(np.asarray(orders)), dtype=np.int32)
        if not self.orders.size:
            raise ParameterError("a list needs at least one word")
        self.size = self.orders.shape[1]
        every = np.arange(self.size, dtype=np.int32)
        if not (np.sort(self.orders, axis=1) == every).all():
            raise ParameterError(
                "each list must contain every word of the working vocabulary exactly once"
            )
        self.places = np.empty_like(self.orders)
        np.put_along_axis(self.places, self.orders, every[None], axis=1)

    @classmethod
    def build(cls, space: Space, parameters: Mapping[str, Any]) -> Self:
        """Build the mechanism over the word lists of a list set."""
        own = dict(parameters)
        lists = own.pop("lists", cls.Parameters().model_dump()["lists"])
        return cls(space.orders(lists), **own)

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return max_l |index_l(w) - index_l(w')| for n pairs of ids, shape (n,)."""
        gap: Floats = (
            np.abs(self.places[:, first] - self.places[:, second]).max(axis=0).astype(np.float64)
        )
        return gap

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:  # noqa: ARG002
        """Return the log probability ln Pr[M(w) = u] of every word u for each of n token ids,
        shape (n, W).
        """
        check_epsilon(epsilon)
        total = np.full((len(ids), self.size), -np.inf)
        for places in self.places:
            by_index = self.log_pmf_index(places[ids].astype(np.int64), epsilon)
            total = np.logaddexp(total, by_index[:, places])
        total -= np.log(len(self.places))
        return total

    def decay(self, epsilon: Floats) -> tuple[Floats, float]:
        """Return how the log weight of an index falls with its distance, for n tokens: the
        decrease for each position, (n,), and the largest decrease.
        """
        return epsilon, np.inf

    def log_pmf_index(self, index: Ids, epsilon: Floats) -> Floats:
        """Return the log probability of each output index for n input indexes in one list, shape
        (n, W).
        """
        raise NotImplementedError

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Words:
        """Draw two uniform 64-bit words per token, (n, 2).

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        from lexveil.core.mechanisms.noise.keystream import draw_words

        check_epsilon(epsilon)
        return draw_words(len(epsilon), 2, rng)

    def replace(self, ids: Ids, epsilon: Floats, noise: Words) -> Ids:
        """Perturb the position of each word in the list that the word's noise chooses."""
        out = np.empty(len(ids), dtype=np.int64)
        n_lists = len(self.orders)
        for start in range(0, len(ids), CHUNK):
            chunk = slice(start, start + CHUNK)
            words = noise[chunk]
            if n_lists == 1:
                index = self.perturb(
                    self.places[0][ids[chunk]].astype(np.int64), epsilon[chunk], words
                )
                out[chunk] = self.orders[0][index]
            else:
                # The chances are equal up to 2^-32; they depend on no word, so the guarantee does
                # not need them to be equal.
                which = (
                    ((words[:, 1] >> np.uint64(32)) * np.uint64(n_lists)) >> np.uint64(32)
                ).astype(np.int64)
                index = self.perturb(
                    self.places[which, ids[chunk]].astype(np.int64), epsilon[chunk], words
                )
                out[chunk] = self.orders[which, index]
        return out

    def perturb(self, index: Ids, epsilon: Floats, words: Words) -> Ids:
        """Draw a new list index for each of n indexes."""
        raise NotImplementedError


def settle(answer: Callable[[Decimal], int], words: Words, shift: int = 0) -> int:
    """Evaluate a step function exactly at a uniform number whose first bits are ``words`` (2,).

    The number's bits are the bits of the first word, without the last ``shift`` bits, and then as
    many as needed from the stream whose key is both words. These bits leave an interval for the
    number. The step function ``answer`` is evaluated at both ends of the interval, at a precision
    far finer than the interval's length, with more and more bits until both values agree.
    """
    from lexveil.core.mechanisms.noise.keystream import expand

    bits = 64 - shift
    known = int(words[0]) >> shift
    key = np.array([words[0], words[1], 0, 0], dtype=np.uint64)
    more = 0
    while True:
        with decimal.localcontext() as context:
            context.prec = int(bits * 0.302) + MORE_DIGITS
            unit = Decimal(2) ** bits
            # This margin is far wider than the rounding errors in ``answer``.
            margin = Decimal(10) ** -(context.prec - GUARD)
            low = Decimal(known) / unit * (1 - margin)
            high = Decimal(known + 1) / unit * (1 + margin)
            low = max(low, Decimal(0))
            high = min(high, Decimal(1))
            ends = answer(low), answer(high)
        if ends[0] == ends[1]:
            return ends[0]
        more += 16
        tail = expand(key, more)
        known = (int(words[0]) >> shift) << (8 * more) | int.from_bytes(tail, "big")
        bits = 64 - shift + 8 * more
