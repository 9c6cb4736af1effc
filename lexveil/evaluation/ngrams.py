"""N-grams of texts, counted once however many classifiers are trained on parts of them.

Counting is most of the work of a linear classifier, and what is counted in a text depends on no
other text. Which n-grams are features, and how much each weighs, depends on the training texts, and
is computed for each training anew.
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

from lexveil.types import Ids

TOKEN = re.compile(r"\w+|[^\w\s]")
MIN_TEXTS = 2  # that an n-gram must be in, of the training texts, to be a feature


@dataclass(frozen=True, slots=True)
class Ngrams:
    """What is counted: words and punctuation marks in lower case, and pairs of neighbours.

    Attributes:
        words: (w,) the distinct single ones.
        columns: (m,) int64, ascending: which n-gram each column counts. A word has its number in
            ``words``; a pair of numbers i, j has w + w·i + j.
    """

    words: pa.StringArray
    columns: Ids

    @classmethod
    def counted(cls, texts: Sequence[str]) -> tuple[Ngrams, csr_array]:
        """The n-grams that are in at least MIN_TEXTS of n texts, and how often each is in each: (n,
        m) float64.
        """
        tokens, sizes = _tokens(texts)
        coded = tokens.dictionary_encode()
        words = coded.dictionary
        keys, text_of = _keys(coded.indices.to_numpy().astype(np.int64), sizes, len(words))
        # One sort for both: how often an n-gram is in a text, and in how many texts it is.
        columns, place = np.unique(keys, return_inverse=True)
        counts = _matrix(text_of, place, (len(texts), len(columns)))
        kept = np.bincount(counts.indices, minlength=len(columns)) >= MIN_TEXTS
        return cls(words, columns[kept]), columns_of(counts, kept)

    def count(self, texts: Sequence[str]) -> csr_array:
        """How often each n-gram is in each of n texts, (n, m) float64; others than these are not
        counted.
        """
        tokens, sizes = _tokens(texts)
        n_words = len(self.words)
        numbers = pc.fill_null(pc.index_in(tokens, self.words), -1).to_numpy().astype(np.int64)
        keys, text_of = _keys(numbers, sizes, n_words)
        place = np.searchsorted(self.columns, keys)
        known = np.append(self.columns, -2)[place] == keys
        return _matrix(text_of[known], place[known], (len(texts), len(self.columns)))


class CountedTexts(Sequence[str]):
    """Texts that bring their counts along, for classifiers that ask for them.

    Attributes:
        texts: n of them.
        ngrams: what was counted.
        counts: (n, m) float64.
    """

    def __init__(self, texts: Sequence[str], ngrams: Ngrams, counts: csr_array) -> None:
        self.texts, self.ngrams, self.counts = texts, ngrams, counts

    @classmethod
    def each(cls, *collections: Sequence[str]) -> list[Self]:
        """Collections of texts, all counted by the same n-grams; one that is given twice is counted
        once.
        """
        distinct = {id(texts): texts for texts in collections}
        ngrams, counts = Ngrams.counted([text for texts in distinct.values() for text in texts])
        made, start = {}, 0
        for name, texts in distinct.items():
            made[name] = cls(texts, ngrams, counts[start : start + len(texts)])
            start += len(texts)
        return [made[id(texts)] for texts in collections]

    def take(self, rows: Ids) -> CountedTexts:
        """The texts at ``rows``, in this order."""
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
    """The texts at ``rows``, in this order, with their counts if they have some."""
    return (
        texts.take(rows)
        if isinstance(texts, CountedTexts)
        else [texts[row] for row in rows.tolist()]
    )


def _tokens(texts: Sequence[str]) -> tuple[pa.StringArray, Ids]:
    """All tokens one after the other, and how many each of n texts has, (n,)."""
    each = [TOKEN.findall(text.lower()) for text in texts]
    sizes = np.fromiter(map(len, each), dtype=np.int64, count=len(each))
    return pa.array(chain.from_iterable(each), pa.large_string(), size=int(sizes.sum())), sizes


def _keys(numbers: Ids, sizes: Ids, n_words: int) -> tuple[Ids, Ids]:
    """Each n-gram of n texts as a number, and the text it is in; of tokens with number -1 there is
    none.
    """
    text_of = np.repeat(np.arange(len(sizes)), sizes)
    single = numbers >= 0
    pair = (text_of[1:] == text_of[:-1]) & single[1:] & single[:-1]
    keys = np.concatenate(
        [numbers[single], n_words + n_words * numbers[:-1][pair] + numbers[1:][pair]]
    )
    return keys, np.concatenate([text_of[single], text_of[1:][pair]])


def _matrix(row_of: Ids, column_of: Ids, shape: tuple[int, int]) -> csr_array:
    """How often each column occurs in each row, columns ascending."""
    counts = csr_array((np.ones(len(row_of)), (row_of, column_of)), shape=shape)
    counts.sum_duplicates()
    return counts


def columns_of(counts: csr_array, kept: npt.NDArray[np.bool_]) -> csr_array:
    """The columns that are kept, (m,); faster than by index, which sorts."""
    number = np.cumsum(kept) - 1
    inside = kept[counts.indices]
    ends = np.concatenate([[0], np.cumsum(inside)])[counts.indptr]
    indices = number[counts.indices[inside]].astype(np.int32)
    return csr_array(
        (counts.data[inside], indices, ends.astype(np.int32)),
        shape=(counts.shape[0], int(kept.sum())),
    )
