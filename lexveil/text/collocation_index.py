"""Immutable look-up of collocations by integer word ids, with their PMI.

``Collocations.scores`` gives, for every position of a batch of sentences, the PMI of the bigram and of the trigram that
starts there (minus infinity where there is none, or where it would cross a sentence boundary).

Scoring is bound by the latency of memory: with millions of collocations nearly every look-up is a cache miss. So a
collocation and its PMI stand side by side in one open-addressing table (one cache line a probe), probes are hashed 64
at a time before any is resolved (their misses overlap), and a trigram is looked for only after a word pair that is
known to start one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from lexveil.errors import RequestError
from lexveil.types import Floats, Ids

WordIds = npt.NDArray[np.int32] | Ids
Table = npt.NDArray[np.void]

# Three word numbers share 63 bits of a key; the sign bit of a pair's key says that a trigram starts with it.
_BITS = 21
MAX_WORDS = 2**_BITS
_KEY = 2**63 - 1
_STARTS_TRIGRAM = -(2**63)

_SLOT = np.dtype([("key", np.int64), ("score", np.float64)])
_EMPTY = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing (Knuth, TAOCP vol. 3, 6.4)
_PROBES = 64  # look-ups whose cache misses overlap


@dataclass(frozen=True, slots=True)
class Collocations:
    """Immutable look-up of bigrams and trigrams with their PMI.

    Attributes:
        word_ids: id by word; empty if the collocations were given as ids alone.
        numbers: (largest id + 1,) int32, the number under which a word takes part in collocations, -1 if in none.
        pairs: hash table of (key, PMI in bits): word pairs that are a bigram or start a trigram (then only with PMI
            minus infinity). Its length is a power of two and at least twice the number of entries.
        triples: the same of trigrams.
    """

    word_ids: dict[str, int]
    numbers: npt.NDArray[np.int32]
    pairs: Table
    triples: Table

    @classmethod
    def build(
        cls,
        bigrams: Sequence[Sequence[str]],
        bigram_pmi: Floats,
        trigrams: Sequence[Sequence[str]],
        trigram_pmi: Floats,
    ) -> Collocations:
        """Make the look-up from columns: ``bigrams`` is (first words, second words), ``trigrams`` has three columns.

        Raises:
            RequestError: if more words take part than a key can hold (2,097,152).
        """
        word_ids: dict[str, int] = {}
        for column in (*bigrams, *trigrams):
            for word in column:
                word_ids.setdefault(word, len(word_ids))
        return cls.for_ids(
            [_numbered(column, word_ids) for column in bigrams],
            bigram_pmi,
            [_numbered(column, word_ids) for column in trigrams],
            trigram_pmi,
            word_ids,
        )

    @classmethod
    def for_ids(
        cls,
        bigrams: Sequence[WordIds],
        bigram_pmi: Floats,
        trigrams: Sequence[WordIds],
        trigram_pmi: Floats,
        word_ids: dict[str, int] | None = None,
    ) -> Collocations:
        """Make the look-up from columns of word ids, in any numbering that starts from 0 or later.

        Args:
            bigrams: two (n,) columns, first and second words.
            bigram_pmi: (n,) bits. Of a bigram that is listed twice the first counts.
            trigrams, trigram_pmi: three (m,) columns, and (m,) bits.
            word_ids: id by word, for ``ids``; not needed where texts come as ids.

        Raises:
            RequestError: if more words take part than a key can hold (2,097,152).
        """
        columns = [np.asarray(column) for column in (*bigrams, *trigrams)]
        if any(len(column) and column.min() < 0 for column in columns):
            raise ValueError("word ids of collocations must not be negative")
        if not (np.isfinite(bigram_pmi).all() and np.isfinite(trigram_pmi).all()):
            raise ValueError("the PMI of a collocation must be a finite number")
        takes_part = np.zeros(max((int(column.max()) + 1 for column in columns if len(column)), default=0), np.bool_)
        for column in columns:
            takes_part[column] = True
        n_words = int(np.count_nonzero(takes_part))
        if n_words > MAX_WORDS:
            raise RequestError(
                f"collocations: {n_words:,} different words; at most {MAX_WORDS:,} can be looked up. "
                "Raise collocations.min_count in params.yaml"
            )
        numbers = np.where(takes_part, np.cumsum(takes_part) - 1, -1).astype(np.int32)
        pair_keys = _pack([numbers[column] for column in columns[:2]])
        triple_keys = _pack([numbers[column] for column in columns[2:]])
        starts = _distinct(triple_keys >> _BITS)
        pairs = _table(len(_distinct(np.concatenate([pair_keys, starts]))))
        _insert(pairs, pair_keys, np.asarray(bigram_pmi, dtype=np.float64))
        _mark(pairs, starts)
        triples = _table(len(triple_keys))
        _insert(triples, triple_keys, np.asarray(trigram_pmi, dtype=np.float64))
        return cls({} if word_ids is None else word_ids, numbers, pairs, triples)

    def only(self, bigrams: Sequence[WordIds], trigrams: Sequence[WordIds]) -> Collocations:
        """Keep the collocations named by columns of word ids; ids that name none are ignored."""
        pair_score, _ = self._of_each(bigrams)
        _, triple_score = self._of_each(trigrams)
        pairs, triples = pair_score > -np.inf, triple_score > -np.inf
        return Collocations.for_ids(
            [column[pairs] for column in bigrams],
            pair_score[pairs],
            [column[triples] for column in trigrams],
            triple_score[triples],
            self.word_ids,
        )

    def _of_each(self, columns: Sequence[WordIds]) -> tuple[Floats, Floats]:
        """PMI of each n-gram, given as columns of word ids: scored as a sentence of its own."""
        size = len(columns)
        ids: Ids = np.stack([column.astype(np.int64) for column in columns], axis=1).reshape(-1)
        pair_score, triple_score = self.scores(ids, np.arange(0, len(ids) + 1, size))
        return pair_score[::size], triple_score[::size]

    def ids(self, words: Iterable[str]) -> Ids:
        """Number words; -1 for a word of no collocation. Shape (n,)."""
        get = self.word_ids.get
        return np.fromiter((get(word, -1) for word in words), dtype=np.int64)

    def scores(self, ids: WordIds, sentence_offsets: Ids) -> tuple[Floats, Floats]:
        """PMI of the bigram and of the trigram starting at each position.

        Args:
            ids: (n,) int32 or int64 word ids; one that takes part in no collocation, -1 too, is allowed.
            sentence_offsets: (n_sentences + 1,) int64 from 0 to n, ascending: where each sentence starts.

        Returns:
            Two (n,) float64 arrays in bits, minus infinity where there is no collocation.
        """
        check_offsets(sentence_offsets, len(ids))
        pair_score, triple_score = np.empty(len(ids)), np.empty(len(ids))
        _score(ids, sentence_offsets, self.numbers, self.pairs, self.triples, pair_score, triple_score)
        return pair_score, triple_score


def check_offsets(sentence_offsets: Ids, n: int) -> None:
    """Compiled code does not check where it writes."""
    if sentence_offsets[0] != 0 or sentence_offsets[-1] != n or (np.diff(sentence_offsets) < 0).any():
        raise ValueError(f"sentence offsets must ascend from 0 to the number of words, {n}")


def _numbered(column: Sequence[str], word_ids: dict[str, int]) -> Ids:
    return np.fromiter((word_ids[word] for word in column), dtype=np.int64, count=len(column))


def _pack(columns: Sequence[npt.NDArray[np.int32]]) -> Ids:
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = (key << _BITS) | column
    return key


def _distinct(keys: Ids) -> Ids:
    """Each key once, ascending; ``np.unique`` enters them into a hash table first, which takes several times longer."""
    keys = np.sort(keys)
    distinct: Ids = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    return distinct


def _table(n_entries: int) -> Table:
    """An empty hash table, at most half full with so many entries."""
    table = np.empty(1 << max(1, 2 * n_entries - 1).bit_length(), dtype=_SLOT)
    table["key"] = _EMPTY
    table["score"] = -np.inf
    return table


@numba.njit(cache=True)
def _shift(table: Table) -> np.uint64:  # pragma: no cover - compiled
    """How far a 64-bit product is shifted to give a slot of the table."""
    bits = 0
    while 1 << bits < len(table):
        bits += 1
    return np.uint64(64 - bits)


@numba.njit(cache=True)
def _insert(table: Table, keys: Ids, scores: Floats) -> None:  # pragma: no cover - compiled
    """Enter n-grams that are not there yet (linear probing)."""
    shift, last = _shift(table), len(table) - 1
    for k in range(len(keys)):
        slot = np.int64((np.uint64(keys[k]) * _GOLDEN) >> shift)
        while table[slot].key != _EMPTY and table[slot].key != keys[k]:
            slot = (slot + 1) & last
        if table[slot].key == _EMPTY:
            table[slot].key = keys[k]
            table[slot].score = scores[k]


@numba.njit(cache=True)
def _mark(table: Table, keys: Ids) -> None:  # pragma: no cover - compiled
    """Mark word pairs, given once each, as the start of a trigram; enter them where they are no bigram."""
    shift, last = _shift(table), len(table) - 1
    for k in range(len(keys)):
        slot = np.int64((np.uint64(keys[k]) * _GOLDEN) >> shift)
        while table[slot].key != _EMPTY and table[slot].key != keys[k]:
            slot = (slot + 1) & last
        table[slot].key = keys[k] | _STARTS_TRIGRAM


@numba.njit(cache=True)
def _find(
    table: Table, shift: np.uint64, keys: Ids, n: int, slots: Ids, seen: Ids
) -> None:  # pragma: no cover - compiled
    """Give the slot of each of the first ``n`` keys and the key that stands there, _EMPTY where the table lacks it."""
    last = len(table) - 1
    for k in range(n):
        slots[k] = np.int64((np.uint64(keys[k]) * _GOLDEN) >> shift)
    # No load waits for the one before, so that all these cache misses are under way at once.
    for k in range(n):
        seen[k] = table[slots[k]].key
    for k in range(n):
        slot, key = slots[k], seen[k]
        while key != _EMPTY and (key & _KEY) != keys[k]:
            slot = (slot + 1) & last
            key = table[slot].key
        slots[k], seen[k] = slot, key


@numba.njit(cache=True)
def _score(
    ids: WordIds,
    sentence_offsets: Ids,
    numbers: npt.NDArray[np.int32],
    pairs: Table,
    triples: Table,
    pair_score: Floats,
    triple_score: Floats,
) -> None:  # pragma: no cover - compiled
    """Look up every bigram, and every trigram whose first two words are known to start one."""
    pair_shift, triple_shift = _shift(pairs), _shift(triples)
    pair_key, pair_at, third = np.empty(_PROBES, np.int64), np.empty(_PROBES, np.int64), np.empty(_PROBES, np.int64)
    # Fewer than _PROBES trigrams wait when a batch of pairs adds at most as many.
    triple_key, triple_at = np.empty(2 * _PROBES, np.int64), np.empty(2 * _PROBES, np.int64)
    slots, seen = np.empty(2 * _PROBES, np.int64), np.empty(2 * _PROBES, np.int64)
    n_pairs, n_triples = 0, 0
    n_numbers, n_sentences = len(numbers), len(sentence_offsets) - 1
    for s in range(n_sentences + 1):
        done = s == n_sentences
        start, end = (0, 0) if done else (sentence_offsets[s], sentence_offsets[s + 1])
        a, b, c = np.int64(-1), np.int64(-1), np.int64(-1)
        i = end - 1
        while i >= start or done:
            if not done:
                # From the right, so that the two words after a position are at hand.
                pair_score[i] = -np.inf
                triple_score[i] = -np.inf
                word = np.int64(ids[i])
                c, b = b, a
                a = np.int64(numbers[word]) if 0 <= word < n_numbers else np.int64(-1)
                # Entered always and kept if both words take part: a branch would be foretold wrongly every other time.
                pair_key[n_pairs] = (a << _BITS) | b
                pair_at[n_pairs] = i
                third[n_pairs] = c
                n_pairs += int((a | b) >= 0)
            if n_pairs == _PROBES or done:
                _find(pairs, pair_shift, pair_key, n_pairs, slots, seen)
                for k in range(n_pairs):
                    # An empty slot holds minus infinity, so that no branch depends on what was found.
                    pair_score[pair_at[k]] = pairs[slots[k]].score
                    triple_key[n_triples] = (pair_key[k] << _BITS) | third[k]
                    triple_at[n_triples] = pair_at[k]
                    n_triples += int((seen[k] < _EMPTY) & (third[k] >= 0))
                n_pairs = 0
                if n_triples >= _PROBES or done:
                    _find(triples, triple_shift, triple_key, n_triples, slots, seen)
                    for k in range(n_triples):
                        triple_score[triple_at[k]] = triples[slots[k]].score
                    n_triples = 0
            if done:
                break
            i -= 1
