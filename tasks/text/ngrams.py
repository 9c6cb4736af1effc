"""Counting n-grams on integers: keys of 64 bits, counted by sorting.

A word is a number below 2**21, so a pair or a triple of words is one int64, and counting is sorting and measuring the
runs of equal keys. NumPy sorts int64 with vector instructions, many times faster than any table of hashes is filled,
and a sorted run can be merged with others in pieces, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BITS = 21
MAX_WORDS = 2**BITS
MASK = MAX_WORDS - 1

Keys = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


def ngram_keys(
    ids: npt.NDArray[np.int32], sizes: npt.NDArray[np.integer], first_id: int, end_id: int
) -> tuple[Keys, Keys]:
    """The keys of all bigrams and trigrams of some sentences, in text order.

    Args:
        ids: (n,) word numbers, sentence after sentence.
        sizes: (s,) tokens of each sentence, all above 0; they add up to n.
        first_id, end_id: an n-gram counts if all of its words lie in [first_id, end_id); ``end_id`` <= 2**21.

    Returns:
        (b,) keys ``x << 21 | y`` and (t,) keys ``x << 42 | y << 21 | z``.

    Raises:
        ValueError: if ``end_id`` does not fit into 21 bits.
    """
    if end_id > MAX_WORDS:
        raise ValueError(f"word numbers up to {end_id - 1:,} do not fit into {BITS} bits")
    counts = (ids >= first_id) & (ids < end_id)
    joined = counts[:-1] & counts[1:]
    ends = np.cumsum(sizes)[:-1] - 1  # the last word of a sentence starts no pair
    joined[ends] = False
    pairs = np.flatnonzero(joined)
    triples = np.flatnonzero(joined[:-1] & joined[1:])
    bigrams = ids[pairs].astype(np.int64) << BITS
    bigrams |= ids[pairs + 1]
    trigrams = ids[triples].astype(np.int64) << BITS
    trigrams |= ids[triples + 1]
    trigrams <<= BITS
    trigrams |= ids[triples + 2]
    return bigrams, trigrams


def count_keys(keys: Keys) -> tuple[Keys, npt.NDArray[np.int32]]:
    """Distinct keys, ascending, and how often each occurs. Sorts ``keys`` in place; at most 2**31 - 1 of them."""
    keys.sort()
    starts = _starts(keys)
    return keys[starts], np.diff(starts, append=len(keys)).astype(np.int32)


def add_up(keys: Keys, counts: npt.NDArray[np.integer]) -> tuple[Keys, Counts]:
    """Distinct keys, ascending, each with the sum of its counts.

    Args:
        keys: (n,) some sorted runs, one after the other.
        counts: (n,)
    """
    order = np.argsort(keys, kind="stable")  # merges runs that are sorted already
    keys = keys[order]
    starts = _starts(keys)
    if not len(starts):
        return keys, np.zeros(0, dtype=np.int64)
    return keys[starts], np.add.reduceat(counts[order], starts, dtype=np.int64)


def _starts(keys: Keys) -> npt.NDArray[np.intp]:
    """Where each run of equal keys begins."""
    changes = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def unpack(keys: Keys, length: int) -> list[npt.NDArray[np.int32]]:
    """The word numbers of each key, one column per place in the n-gram."""
    return [((keys >> (BITS * place)) & MASK).astype(np.int32) for place in reversed(range(length))]
