"""N-gram counts of texts, which are computed once for any number of classifiers that are trained on
parts of the texts.

Counting is most of the work of a linear classifier, and the counts of a text depend on no other
text. The choice of features and their weights depend on the training texts, and are computed anew
for each training.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from lexveil.base.types import Ids

TOKEN = re.compile(r"\w+|[^\w\s]")
MIN_TEXTS = (
    2  # smallest number of training texts that must contain an n-gram for it to be a feature
)


@dataclass(frozen=True, slots=True)
class Ngrams:
    """The n-grams that are counted: words and punctuation marks in lower case, and pairs of
    neighbours.

    Attributes:
        words: (w,) the distinct words and marks.
        columns: (m,) int64, ascending: the n-gram that each column counts. A word is its row in
            ``words``; a pair of the rows i, j is w + w·i + j.
    """

    words: pa.StringArray
    columns: Ids

    @classmethod
    def counted(cls, texts: Sequence[str]) -> tuple[Ngrams, csr_array]:
        """Count n-grams in n texts: return those that occur in at least MIN_TEXTS texts, and the
        count of each in each text, (n, m) float64.
        """
        tokens, sizes = _tokens(texts)
        coded = tokens.dictionary_encode()
        words = coded.dictionary
        keys, text_of = _keys(coded.indices.to_numpy().astype(np.int64), sizes, len(words))
        # One sort serves both the counts in a text and the numbers of texts.
        columns, place = np.unique(keys, return_inverse=True)
        counts = _matrix(text_of, place, (len(texts), len(columns)))
        is_frequent = np.bincount(counts.indices, minlength=len(columns)) >= MIN_TEXTS
        return cls(words, columns[is_frequent]), columns_of(counts, is_frequent)

    def count(self, texts: Sequence[str]) -> csr_array:
        """Count each of these n-grams in each of n texts, (n, m) float64; other n-grams are
        ignored.
        """
        tokens, sizes = _tokens(texts)
        n_words = len(self.words)
        numbers = pc.fill_null(pc.index_in(tokens, self.words), -1).to_numpy().astype(np.int64)
        keys, text_of = _keys(numbers, sizes, n_words)
        place = np.searchsorted(self.columns, keys)
        known = np.append(self.columns, -2)[place] == keys
        return _matrix(text_of[known], place[known], (len(texts), len(self.columns)))


class CountedTexts(Sequence[str]):
    """Texts with precomputed counts, for classifiers that can use them.

    Attributes:
        texts: the n texts.
        ngrams: the counted n-grams.
        counts: (n, m) float64, the count of each n-gram in each text.
    """

    def __init__(self, texts: Sequence[str], ngrams: Ngrams, counts: csr_array) -> None:
        self.texts = texts
        self.ngrams = ngrams
        self.counts = counts

    @classmethod
    def each(cls, *collections: Sequence[str]) -> list[Self]:
        """Count the same n-grams in several collections of texts; a collection that occurs twice is
        counted once.
        """
        distinct = {id(texts): texts for texts in collections}
        ngrams, counts = Ngrams.counted([text for texts in distinct.values() for text in texts])
        by_order = {}
        start = 0
        for name, texts in distinct.items():
            by_order[name] = cls(texts, ngrams, counts[start : start + len(texts)])
            start += len(texts)
        return [by_order[id(texts)] for texts in collections]

    def take(self, rows: Ids) -> CountedTexts:
        """Select the texts at ``rows``, in this order, with their counts."""
        return CountedTexts(
            [self.texts[row] for row in rows.tolist()], self.ngrams, self.counts[rows]
        )

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return self.texts[at]

    def __len__(self) -> int:
        return len(self.texts)


def take(texts: Sequence[str], rows: Ids) -> Sequence[str]:
    """Select the texts at ``rows``, in this order, with their n-gram counts if ``texts`` has
    counts.
    """
    return (
        texts.take(rows)
        if isinstance(texts, CountedTexts)
        else [texts[row] for row in rows.tolist()]
    )


def _tokens(texts: Sequence[str]) -> tuple[pa.StringArray, Ids]:
    """Tokenize n texts; return all tokens one after the other, and the number of tokens of each
    text, (n,).
    """
    each = [TOKEN.findall(text.lower()) for text in texts]
    sizes = np.fromiter(map(len, each), dtype=np.int64, count=len(each))
    return pa.array(chain.from_iterable(each), pa.large_string(), size=int(sizes.sum())), sizes


def _keys(numbers: Ids, sizes: Ids, n_words: int) -> tuple[Ids, Ids]:
    """Encode each n-gram of n texts as an integer, and return it with the row of its text; tokens
    with id -1 form no n-gram.
    """
    text_of = np.repeat(np.arange(len(sizes)), sizes)
    single = numbers >= 0
    pair = (text_of[1:] == text_of[:-1]) & single[1:] & single[:-1]
    keys = np.concatenate(
        [numbers[single], n_words + n_words * numbers[:-1][pair] + numbers[1:][pair]]
    )
    return keys, np.concatenate([text_of[single], text_of[1:][pair]])


def _matrix(row_of: Ids, column_of: Ids, shape: tuple[int, int]) -> csr_array:
    """Count how often each pair of row and column occurs, and return the counts as a sparse matrix
    with ascending columns.
    """
    counts = csr_array((np.ones(len(row_of)), (row_of, column_of)), shape=shape)
    counts.sum_duplicates()
    return counts


def columns_of(counts: csr_array, is_column: npt.NDArray[np.bool_]) -> csr_array:
    """Select the columns of a sparse matrix for which ``is_column`` (m,) is true. Indexing would
    sort the columns, and be slower.
    """
    number = np.cumsum(is_column) - 1
    inside = is_column[counts.indices]
    ends = np.concatenate([[0], np.cumsum(inside)])[counts.indptr]
    indices = number[counts.indices[inside]].astype(np.int32)
    return csr_array(
        (counts.data[inside], indices, ends.astype(np.int32)),
        shape=(counts.shape[0], int(is_column.sum())),
    )
