"""Interpolated Kneser-Ney: an n-gram language model on sorted arrays of integers.

Source: Kneser and Ney (1995) in the interpolated form of Chen and Goodman (1999), with the adjusted
counts and the unknown word of Heafield et al. (2013), section 3:

    p_k(w | h) = max(a(hw) - D_k, 0) / A(h) + D_k · N(h) / A(h) · p_{k-1}(w | h'),
    p_0(w) = 1 / (V + 2)

h' is h without its first word. If g has the highest order or begins with ``<s>``, a(g) is the
number of occurrences of g, else the number of different words that precede g. A(h) is the sum of
a(hw) over all w, and N(h) is the number of different w after h. D_k = t₁ / (t₁ + 2·t₂), where t_i
is the number of k-grams with a = i (Ney, Essen and Kneser, 1994).

A sentence is ``<s> w₁ … w_m </s>`` with one ``<s>``, which is never predicted. The model predicts V
words, ``</s>`` and ``<unk>``, which represents the words that were not counted. Counting turns no
word into ``<unk>``, so ``<unk>`` has only its part of p_0, and unknown words do not make a text
likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexveil.base.errors import ParameterError
from lexveil.base.types import Flags, Floats, Ids, Int32

# Discount if no n-gram of an order has a = 1, or none has a = 2: the estimate would be 0 or 1.
DISCOUNT = 0.5


@dataclass(frozen=True, slots=True)
class Order:
    """Trained n-grams g = hw of one order, where w is the last word and h the words before it.

    Attributes:
        keys: (m,) int64, ascending: number of h in the order below, times the number of symbols,
            plus w.
        seen: (m,) float64, max(a(g) - D, 0) / A(h).
        rest: D·N(h) / A(h) by number of h, float64; 1 if no word ever followed h.
        discount: D.
    """

    keys: Ids
    seen: Floats
    rest: Floats
    discount: float

    def find(self, keys: Ids) -> Ids:
        """Return the index of each n-gram by its key; -1 for an n-gram that was not counted."""
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)


class BigramModel(NamedTuple):
    """Kneser-Ney bigram probabilities p_2, indexed by the preceding word. With v before w, p_2(w |
    v) = rest[v]·single[w], plus ``seen`` of the pair if the pair was counted.

    Symbols are S = V + 3 numbers: words, ``<unk>`` V, ``</s>`` V + 1 and ``<s>`` V + 2.

    Attributes:
        single: (S,) p_1 of each symbol.
        starts: (S + 1,) the first entry of each first symbol in ``keys``.
        keys: (m,) first symbol times S plus second symbol of each counted pair, ascending.
        seen: (m,) max(a - D, 0) / A of each pair.
        rest: (S,) weight of p_1 after each symbol.
    """

    single: Floats
    starts: Ids
    keys: Ids
    seen: Floats
    rest: Floats

    @property
    def unknown(self) -> int:
        """Symbol for words that were not counted."""
        return len(self.single) - 3

    @property
    def begin(self) -> int:
        """Symbol that precedes the first word of a sentence."""
        return len(self.single) - 1

    def probability(self, first: Ids, second: Ids) -> Floats:
        """Return the bigram probabilities p_2 of pairs of symbols; the shapes of the two arrays
        must broadcast.
        """
        p: Floats = self.rest[first] * self.single[second]
        if len(self.keys):
            wanted = first * len(self.single) + second
            at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
            p += np.where(self.keys[at] == wanted, self.seen[at], 0.0)
        return p


@dataclass(frozen=True, slots=True)
class KneserNey:
    """Trained Kneser-Ney language model; ``train`` builds one.

    Attributes:
        n_words: V.
        orders: the n-grams by order, beginning with 1-grams.
    """

    n_words: int
    orders: Sequence[Order]

    @property
    def n_outcomes(self) -> int:
        """Number of symbols that the model can predict, V + 2: words, ``<unk>`` and ``</s>``."""
        return self.n_words + 2

    def log_probability(self, ids: Ids, offsets: Ids) -> Floats:
        """Return the natural log probability of each token of s sentences, and of the end of each
        sentence.

        Args:
            ids: (n,) word numbers from 0; numbers outside [0, V) are unknown words.
            offsets: (s + 1,) the first token of each sentence in ``ids``.

        Returns:
            (n + s,): in text order; the ``</s>`` of a sentence follows its tokens.
        """
        symbols, place = _symbols(ids, offsets, self.n_words)
        probability = np.full(len(symbols), 1 / self.n_outcomes)
        context = np.zeros(len(symbols), dtype=np.int64)  # the empty context
        for order, known in enumerate(self.orders, start=1):
            # Near the start of its sentence a token has only shorter contexts. The symbol at place
            # 0 of a sentence is not predicted; its number serves as a context only.
            valid = (context >= 0) & (place >= order - 1)
            rows = np.full(len(symbols), -1, dtype=np.int64)
            rows[valid] = known.find(context[valid] * (self.n_words + 3) + symbols[valid])
            share = np.where(rows[valid] >= 0, known.seen[rows[valid]], 0.0)
            probability[valid] = share + known.rest[context[valid]] * probability[valid]
            context = np.concatenate([[-1], rows])[:-1]  # the gram that ends one symbol earlier
        predicted: Floats = np.log(probability[place > 0])
        return predicted

    def bigrams(self) -> BigramModel:
        """Return the bigram part of the model, which uses one word of context."""
        n_symbols = self.n_words + 3
        words = self.orders[0]
        single = np.full(n_symbols, words.rest[0] / self.n_outcomes)
        single[words.keys] += words.seen
        starts = np.zeros(n_symbols + 1, dtype=np.int64)
        rest = np.ones(n_symbols)
        if len(self.orders) == 1:
            return BigramModel(single, starts, np.empty(0, dtype=np.int64), np.empty(0), rest)
        pairs = self.orders[1]
        first = np.asarray(words.keys)[pairs.keys // n_symbols]
        starts[1:] = np.cumsum(np.bincount(first, minlength=n_symbols))
        rest[words.keys] = pairs.rest
        return BigramModel(
            single, starts, first * n_symbols + pairs.keys % n_symbols, np.asarray(pairs.seen), rest
        )


def train(ids: Ids, offsets: Ids, n_words: int, order: int = 3) -> KneserNey:
    """Train a Kneser-Ney model: count the n-grams of s sentences.

    Args:
        ids: (n,) word numbers from 0; numbers outside [0, n_words) are counted as ``<unk>``.
        offsets: (s + 1,) the first token of each sentence in ``ids``.
        n_words: V.
        order: length of the longest n-gram.

    Counting needs about 90 bytes per token, so callers sample sentences or documents of a large
    corpus beforehand. There may be at most 2³¹ tokens, including two marks per sentence.

    Raises:
        ParameterError: if there is no sentence.
    """
    if len(offsets) < 2:
        raise ParameterError(
            "the language model received no sentences; use a corpus that contains text"
        )
    symbols, place = _symbols(ids, offsets, n_words)
    n_symbols = n_words + 3
    # keys, a(g), and whether g begins with <s>, of the grams of each order
    grams: list[tuple[Ids, Ids, Flags]] = []
    # number of the gram that ends at each symbol; -1 if none ends there
    number = np.zeros(len(symbols), dtype=np.int32)
    for length in range(1, order + 1):
        ends = np.flatnonzero(place >= length - 1)
        if not len(ends):  # no sentence is long enough: this order would change no probability
            break
        # The context is the gram that ends one symbol earlier; for 1-grams it is the empty gram, 0.
        context = number[ends - (length > 1)].astype(np.int64)
        keys, gram, first, count = _distinct(context * n_symbols + symbols[ends])
        first = ends[first]
        # a(g) of the order below: every gram of this order puts another word before the gram at its
        # end with
        if length > 1:
            below, occurrences, at_start = grams[-1]
            before = np.bincount(number[first], minlength=len(below))
            grams[-1] = below, np.where(at_start, occurrences, before), at_start
        number = np.full(len(symbols), -1, dtype=np.int32)
        number[ends] = gram
        grams.append((keys, count, place[first] == length - 1))
    n_contexts = [1, *(len(keys) for keys, *_ in grams)]
    orders = [
        _order(keys, a, n_symbols, n) for (keys, a, _), n in zip(grams, n_contexts, strict=False)
    ]
    return KneserNey(n_words, orders)


def _order(keys: Ids, counts: Ids, n_symbols: int, n_contexts: int) -> Order:
    """Build the n-grams of one order from their (m,) keys and adjusted counts a(g)."""
    context = keys // n_symbols
    # <s> is a context, never an outcome; it has number n_symbols - 1 and occurs in the 1-grams
    # alone.
    outcome = keys % n_symbols != n_symbols - 1
    count = np.where(outcome, counts, 0).astype(np.float64)
    once, twice = ((count == times).sum() for times in (1, 2))
    discount = float(once / (once + 2 * twice)) if once and twice else DISCOUNT
    total = np.bincount(context, weights=count, minlength=n_contexts)
    followed = total > 0
    rest = np.ones(n_contexts)
    kinds = np.bincount(context[outcome], minlength=n_contexts)
    rest[followed] = discount * kinds[followed] / total[followed]
    above = np.maximum(count - discount, 0.0)
    seen = np.divide(above, total[context], out=np.zeros(len(count)), where=followed[context])
    return Order(keys, seen, rest, discount)


def _distinct(keys: Ids) -> tuple[Ids, Int32, Ids, Ids]:
    """Return the m distinct keys among n keys, ascending; (n,) the position of each key among them;
    (m,) the position of one occurrence of each; and (m,) the count of each.

    ``np.unique`` would take twice as long, because it sorts stably to return the first occurrence.
    """
    by = np.argsort(keys)
    ordered = keys[by]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    count = np.diff(first, append=len(keys))
    number = np.empty(len(keys), dtype=np.int32)
    number[by] = np.repeat(np.arange(len(first), dtype=np.int32), count)
    return ordered[first], number, by[first], count


def _symbols(ids: Ids, offsets: Ids, n_words: int) -> tuple[Int32, Int32]:
    """Return the symbols of all sentences with their begin and end marks, and the position of each
    symbol in its sentence, (n + 2s,) each.

    Words keep their numbers; ``<unk>`` is V, ``</s>`` V + 1 and ``<s>`` V + 2.
    """
    sizes = np.diff(offsets)
    starts = offsets[:-1] + 2 * np.arange(len(sizes))
    place = np.arange(len(ids) + 2 * len(sizes), dtype=np.int32) - np.repeat(
        starts.astype(np.int32), sizes + 2
    )
    symbols = np.full(len(place), n_words + 1, dtype=np.int32)
    symbols[starts] = n_words + 2
    inside = np.ones(len(place), dtype=np.bool_)
    inside[starts] = inside[starts + sizes + 1] = False
    symbols[inside] = np.where((ids >= 0) & (ids < n_words), ids, n_words)
    return symbols, place
