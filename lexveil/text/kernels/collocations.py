"""Hash tables of collocations, and the scores of many words.

Scoring is bound by the latency of memory: with millions of collocations nearly every look-up is a cache miss. So a
collocation and its PMI stand side by side in one open-addressing table (one cache line a probe), probes are hashed 64
at a time before any is resolved (their misses overlap), and a trigram is looked for only after a word pair that is
known to start one.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from lexveil.text.collocation_keys import BITS, Table, WordIds
from lexveil.types import Floats, Ids

# The sign bit of a pair's key says that a trigram starts with it.
_KEY = 2**63 - 1
_STARTS_TRIGRAM = -(2**63)

_SLOT = np.dtype([("key", np.int64), ("score", np.float64)])
_EMPTY = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing (Knuth, TAOCP vol. 3, 6.4)
_PROBES = 64  # look-ups whose cache misses overlap


def tables(pair_keys: Ids, pair_pmi: Floats, triple_keys: Ids, triple_pmi: Floats) -> tuple[Table, Table]:
    """Hash tables of (key, PMI in bits) of word pairs and of trigrams; the keys of each are distinct.

    A pair that starts a trigram is entered too, with PMI minus infinity if it is no bigram.
    """
    starts = triple_keys >> BITS
    starts = starts[np.append(True, starts[1:] != starts[:-1])[: len(starts)]]
    pairs = _table(len(pair_keys) + len(starts))
    insert(pairs, pair_keys, pair_pmi)
    mark(pairs, starts)
    triples = _table(len(triple_keys))
    insert(triples, triple_keys, triple_pmi)
    return pairs, triples


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
def insert(table: Table, keys: Ids, scores: Floats) -> None:  # pragma: no cover - compiled
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
def mark(table: Table, keys: Ids) -> None:  # pragma: no cover - compiled
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
def score(
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
                pair_key[n_pairs] = (a << BITS) | b
                pair_at[n_pairs] = i
                third[n_pairs] = c
                n_pairs += int((a | b) >= 0)
            if n_pairs == _PROBES or done:
                _find(pairs, pair_shift, pair_key, n_pairs, slots, seen)
                for k in range(n_pairs):
                    # An empty slot holds minus infinity, so that no branch depends on what was found.
                    pair_score[pair_at[k]] = pairs[slots[k]].score
                    triple_key[n_triples] = (pair_key[k] << BITS) | third[k]
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
