"""N-grams as integers: keys by hand, and counting against Counter."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.ngrams import MAX_WORDS, add_up, count_keys, ngram_keys, unpack


def keys_of(lines: list[list[int]], first: int, end: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    ids = np.array([word for line in lines for word in line], dtype=np.int32)
    keys = ngram_keys(ids, np.array([len(line) for line in lines], dtype=np.int32), first, end)
    return tuple(list(zip(*(c.tolist() for c in unpack(k, n)), strict=True)) for k, n in zip(keys, (2, 3), strict=True))


def test_keys_by_hand() -> None:
    """Words 2 to 4 count: 1 is punctuation, 5 too rare; nothing crosses the end of a sentence."""
    pairs, triples = keys_of([[2, 3, 4, 1, 2], [3, 5, 4, 4]], 2, 5)
    assert pairs == [(2, 3), (3, 4), (4, 4)]
    assert triples == [(2, 3, 4)]
    bigrams, trigrams = ngram_keys(np.array([2, 3, 4], np.int32), np.array([3], np.int32), 0, 9)
    assert bigrams.tolist() == [2 * 2**21 + 3, 3 * 2**21 + 4]
    assert trigrams.tolist() == [2 * 2**42 + 3 * 2**21 + 4]


def test_the_largest_word_fits_and_no_larger_one() -> None:
    last = MAX_WORDS - 1
    assert keys_of([[last, last, last]], 0, MAX_WORDS) == ([(last, last)] * 2, [(last, last, last)])
    with pytest.raises(ValueError, match="do not fit into 21 bits"):
        keys_of([[0]], 0, MAX_WORDS + 1)


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), max_size=6), st.integers(0, 3), st.integers(3, 7))
def test_any_sentences_against_slices(lines: list[list[int]], first: int, end: int) -> None:
    for n, found in zip((2, 3), keys_of(lines, first, end), strict=True):
        grams = (tuple(line[i : i + n]) for line in lines for i in range(len(line) - n + 1))
        assert found == [gram for gram in grams if all(first <= word < end for word in gram)]


@given(st.lists(st.lists(st.integers(0, 2**62), max_size=30), min_size=1, max_size=4))
def test_counting_runs_and_adding_them_up(parts: list[list[int]]) -> None:
    runs = [count_keys(np.array(part, dtype=np.int64)) for part in parts]
    for part, (keys, counts) in zip(parts, runs, strict=True):
        assert list(zip(keys.tolist(), counts.tolist(), strict=True)) == sorted(Counter(part).items())
    keys, counts = add_up(*(np.concatenate(column) for column in zip(*runs, strict=True)))
    total = Counter(key for part in parts for key in part)
    assert list(zip(keys.tolist(), counts.tolist(), strict=True)) == sorted(total.items())


def test_sums_leave_32_bits() -> None:
    _, counts = add_up(np.zeros(3, np.int64), np.full(3, 2**31 - 1, np.int32))
    assert counts.tolist() == [3 * (2**31 - 1)]
