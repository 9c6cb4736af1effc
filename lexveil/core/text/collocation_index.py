"""Immutable index of collocations by integer word ids, with the pointwise mutual information (PMI)
of each collocation.

For every position of a batch of sentences, ``Collocations.scores`` gives the PMI of the bigram and
of the trigram that starts there. The PMI is minus infinity if no collocation starts there, or if it
would cross a sentence boundary. Collocations are found by binary search in sorted arrays of packed
keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from lexveil.base.errors import RequestError
from lexveil.base.types import Flags, Floats, Ids

WordIds = npt.NDArray[np.int32] | Ids

BITS = 21  # bits of a word's number; a key packs three word numbers into 63 bits
MAX_WORDS = 2**BITS


@dataclass(frozen=True)
class Collocations:
    """Immutable index of bigrams and trigrams with their pointwise mutual information (PMI).

    Attributes:
        word_ids: id by word; empty if the index was built from ids only.
        numbers: (largest id + 1,) int32, the number of each word id inside the keys; -1 for a word
            that no collocation contains.
        pair_keys, pair_pmi: (n,) the keys of the bigrams, ascending, and their PMI in bits.
        triple_keys, triple_pmi: (m,) the keys of the trigrams, ascending, and their PMI in bits.
    """

    word_ids: dict[str, int]
    numbers: npt.NDArray[np.int32]
    pair_keys: Ids
    pair_pmi: Floats
    triple_keys: Ids
    triple_pmi: Floats

    @classmethod
    def build(
        cls,
        bigrams: Sequence[Sequence[str]],
        bigram_pmi: Floats,
        trigrams: Sequence[Sequence[str]],
        trigram_pmi: Floats,
    ) -> Collocations:
        """Build the index of collocations from columns of words: ``bigrams`` is (first words,
        second words), ``trigrams`` has three columns.

        Raises:
            RequestError: if the collocations have more different words than a key can hold
                (2,097,152).
        """
        words = dict.fromkeys(chain(*bigrams, *trigrams))  # distinct words in order of appearance
        word_ids = {word: number for number, word in enumerate(words)}
        pairs, triples = (
            [np.array([word_ids[word] for word in column], dtype=np.int64) for column in columns]
            for columns in (bigrams, trigrams)
        )
        return cls.for_ids(pairs, bigram_pmi, triples, trigram_pmi, word_ids)

    @classmethod
    def for_ids(
        cls,
        bigrams: Sequence[WordIds],
        bigram_pmi: Floats,
        trigrams: Sequence[WordIds],
        trigram_pmi: Floats,
        word_ids: dict[str, int] | None = None,
    ) -> Collocations:
        """Build the index of collocations from columns of word ids. Any numbering of words without
        negative ids is allowed.

        Args:
            bigrams: two (n,) columns, first and second words.
            bigram_pmi: (n,) bits. If a bigram is listed twice, its first value counts.
            trigrams, trigram_pmi: three (m,) columns, and (m,) bits.
            word_ids: id by word, for the method ``ids``; not needed if texts are given as ids.

        Raises:
            RequestError: if the collocations have more different words than a key can hold
                (2,097,152).
        """
        columns = [np.asarray(column) for column in (*bigrams, *trigrams)]
        if any(len(column) and column.min() < 0 for column in columns):
            raise ValueError("word ids of collocations must not be negative")
        if not (np.isfinite(bigram_pmi).all() and np.isfinite(trigram_pmi).all()):
            raise ValueError("the PMI of a collocation must be a finite number")
        takes_part = np.zeros(
            max((int(column.max()) + 1 for column in columns if len(column)), default=0), np.bool_
        )
        for column in columns:
            takes_part[column] = True
        n_words = int(np.count_nonzero(takes_part))
        if n_words > MAX_WORDS:
            raise RequestError(
                f"collocations: {n_words:,} different words; at most {MAX_WORDS:,} can be "
                "looked up. "
                "Raise collocations.min_count in params.yaml"
            )
        numbers = np.where(takes_part, np.cumsum(takes_part) - 1, -1).astype(np.int32)
        pairs = _sorted(_pack([numbers[column] for column in columns[:2]]), bigram_pmi)
        triples = _sorted(_pack([numbers[column] for column in columns[2:]]), trigram_pmi)
        return cls({} if word_ids is None else word_ids, numbers, *pairs, *triples)

    def ids(self, words: Iterable[str]) -> Ids:
        """Return the (n,) ids of n words; -1 for a word that no collocation contains."""
        get = self.word_ids.get
        return np.fromiter((get(word, -1) for word in words), dtype=np.int64)

    def scores(self, ids: WordIds, sentence_offsets: Ids) -> tuple[Floats, Floats]:
        """Return the PMI of the bigram and of the trigram that start at each position.

        Args:
            ids: (n,) int32 or int64 word ids. Words that no collocation contains are allowed, and
                so is -1.
            sentence_offsets: (n_sentences + 1,) int64 from 0 to n, ascending: the first word of
                each sentence.

        Returns:
            Two (n,) float64 arrays in bits, minus infinity where there is no collocation.
        """
        check_offsets(sentence_offsets, len(ids))
        known = (ids >= 0) & (ids < len(self.numbers))
        number = np.full(len(ids) + 2, -1, dtype=np.int64)
        number[: len(ids)][known] = self.numbers[ids[known]]
        first = number[:-2]
        second = number[1:-1]
        third = number[2:]
        words_left = np.repeat(sentence_offsets[1:], np.diff(sentence_offsets)) - np.arange(
            len(ids)
        )
        is_pair = (first >= 0) & (second >= 0) & (words_left > 1)
        is_triple = is_pair & (third >= 0) & (words_left > 2)
        pair = first << BITS | second
        return (
            _looked_up(pair, is_pair, self.pair_keys, self.pair_pmi),
            _looked_up(pair << BITS | third, is_triple, self.triple_keys, self.triple_pmi),
        )


def check_offsets(sentence_offsets: Ids, n: int) -> None:
    """Raise ValueError unless the offsets ascend from 0 to n. The compiled code, which uses them,
    does not check bounds.
    """
    if (
        sentence_offsets[0] != 0
        or sentence_offsets[-1] != n
        or (np.diff(sentence_offsets) < 0).any()
    ):
        raise ValueError(f"sentence offsets must ascend from 0 to the number of words, {n}")


def _pack(columns: Sequence[npt.NDArray[np.int32]]) -> Ids:
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = (key << BITS) | column
    return key


def _sorted(keys: Ids, scores: Floats) -> tuple[Ids, Floats]:
    """Sort the collocation keys, drop repeated keys, and keep the first score of each key."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    scores = np.asarray(scores, dtype=np.float64)[order]
    first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return (keys, scores) if first.all() else (keys[first], scores[first])


def _looked_up(wanted: Ids, is_wanted: Flags, keys: Ids, scores: Floats) -> Floats:
    """Return the PMI score of each wanted key; minus infinity for a key that is not in the
    index.
    """
    looked_up = np.full(len(wanted), -np.inf)
    if len(keys):
        positions = np.flatnonzero(is_wanted)
        rows = np.minimum(np.searchsorted(keys, wanted[positions]), len(keys) - 1)
        is_known = keys[rows] == wanted[positions]
        looked_up[positions[is_known]] = scores[rows[is_known]]
    return looked_up
