"""Collocations, and the three ways to cut a sentence into them: gst, mst, mst_exact (CLMLDP section 4.1.2).

All three work on a whole batch of sentences at once. ``Collocations.scores`` gives, for every position, the PMI of
the bigram and of the trigram that starts there (minus infinity where there is none, or where it would cross a
sentence boundary); the kernels turn scores into token lengths. Since no candidate crosses a boundary, cutting the
concatenated batch is the same as cutting each sentence alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from tasks.errors import RequestError

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Lengths = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]

SEGMENTATIONS = ("word", "gst", "mst", "mst_exact")

# Three word ids share one 64-bit key, so that a collocation is found by one binary search on integers.
_BITS = 21
MAX_WORDS = 2**_BITS


@dataclass(frozen=True, slots=True)
class Collocations:
    """Immutable look-up of bigrams and trigrams with their PMI.

    Attributes:
        word_ids: the words that occur in any collocation, numbered from 0.
        bigram_keys, trigram_keys: (n,) int64, sorted; word ids packed 21 bits each.
        bigram_pmi, trigram_pmi: (n,) float64, bits, aligned with the keys.
    """

    word_ids: dict[str, int]
    bigram_keys: Ids
    bigram_pmi: Floats
    trigram_keys: Ids
    trigram_pmi: Floats

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
        if len(word_ids) > MAX_WORDS:
            raise RequestError(
                f"collocations: {len(word_ids):,} different words; at most {MAX_WORDS:,} can be looked up. "
                "Raise collocations.min_count in params.yaml"
            )
        pairs = _pack([_numbered(column, word_ids) for column in bigrams])
        triples = _pack([_numbered(column, word_ids) for column in trigrams])
        by_pair, by_triple = np.argsort(pairs), np.argsort(triples)
        return cls(word_ids, pairs[by_pair], bigram_pmi[by_pair], triples[by_triple], trigram_pmi[by_triple])

    def only(self, bigrams: Sequence[Ids], trigrams: Sequence[Ids]) -> Collocations:
        """Keep the collocations named by columns of word ids; ids that name none are ignored."""
        pairs = np.isin(self.bigram_keys, _pack(bigrams))
        triples = np.isin(self.trigram_keys, _pack(trigrams))
        return Collocations(
            self.word_ids,
            self.bigram_keys[pairs],
            self.bigram_pmi[pairs],
            self.trigram_keys[triples],
            self.trigram_pmi[triples],
        )

    def ids(self, words: Iterable[str]) -> Ids:
        """Number words; -1 for a word of no collocation. Shape (n,)."""
        get = self.word_ids.get
        return np.fromiter((get(word, -1) for word in words), dtype=np.int64)

    def scores(self, ids: Ids, sentence: Ids) -> tuple[Floats, Floats]:
        """PMI of the bigram and of the trigram starting at each position.

        Args:
            ids: (n,) word ids from ``ids``.
            sentence: (n,) number of the sentence each word belongs to; equal and contiguous within a sentence.

        Returns:
            Two (n,) float64 arrays in bits, minus infinity where there is no collocation.
        """
        n = len(ids)
        pair_score, triple_score = np.full(n, -np.inf), np.full(n, -np.inf)
        pairs = np.flatnonzero((ids[:-1] >= 0) & (ids[1:] >= 0) & (sentence[:-1] == sentence[1:]))
        pair_score[pairs] = _find(self.bigram_keys, self.bigram_pmi, _pack([ids[pairs], ids[pairs + 1]]))
        triples = pairs[:-1][(np.diff(pairs) == 1)] if len(pairs) > 1 else pairs[:0]
        keys = _pack([ids[triples], ids[triples + 1], ids[triples + 2]])
        triple_score[triples] = _find(self.trigram_keys, self.trigram_pmi, keys)
        return pair_score, triple_score


def _numbered(column: Sequence[str], word_ids: dict[str, int]) -> Ids:
    return np.fromiter((word_ids[word] for word in column), dtype=np.int64, count=len(column))


def _pack(columns: Sequence[Ids]) -> Ids:
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = (key << _BITS) | column
    return key


def _find(keys: Ids, values: Floats, wanted: Ids) -> Floats:
    """The value of each wanted key, minus infinity where it is missing."""
    found = np.full(len(wanted), -np.inf)
    if len(keys):
        at = np.searchsorted(keys, wanted)
        at[at == len(keys)] = 0
        hit = keys[at] == wanted
        found[hit] = values[at[hit]]
    return found


def segment(segmentation: str, pair_score: Floats, triple_score: Floats, sentence: Ids) -> Lengths:
    """Token lengths of a batch of sentences.

    Args:
        segmentation: one of SEGMENTATIONS.
        pair_score, triple_score: (n,) from ``Collocations.scores``.
        sentence: (n,) sentence numbers; only mst_exact looks at them.

    Returns:
        (n,) int8: at the first word of a token its length in words (1 to 3), 0 inside a token.
    """
    if segmentation == "word":
        return np.ones(len(pair_score), dtype=np.int8)
    if segmentation == "gst":
        return _gst(pair_score > -np.inf, triple_score > -np.inf)
    if segmentation == "mst":
        return _mst(*_by_score(pair_score, triple_score), len(pair_score))
    if segmentation == "mst_exact":
        return _mst_exact(pair_score, triple_score, sentence)
    raise ValueError(f"unknown segmentation {segmentation!r}")


@numba.njit(cache=True)
def _gst(pair: Flags, triple: Flags) -> Lengths:  # pragma: no cover - compiled
    """Greedy Sequential Tokenization (CLMLDP Algorithm 1): left to right, the longest collocation first."""
    n = len(pair)
    lengths = np.zeros(n, dtype=np.int8)
    i = 0
    while i < n:
        step = 3 if triple[i] else (2 if pair[i] else 1)
        lengths[i] = step
        i += step
    return lengths


def _by_score(pair_score: Floats, triple_score: Floats) -> tuple[Ids, Lengths]:
    """Starts and lengths of all candidates: highest score first; ties: longer first, then leftmost."""
    pairs, triples = np.flatnonzero(pair_score > -np.inf), np.flatnonzero(triple_score > -np.inf)
    starts = np.concatenate([triples, pairs])  # longer first, leftmost first: a stable sort keeps it within ties
    scores = np.concatenate([triple_score[triples], pair_score[pairs]])
    sizes = np.concatenate([np.full(len(triples), 3, np.int8), np.full(len(pairs), 2, np.int8)])
    order = np.argsort(-scores, kind="stable")
    return starts[order], sizes[order]


@numba.njit(cache=True)
def _mst(starts: Ids, sizes: Lengths, n: int) -> Lengths:  # pragma: no cover - compiled
    """Max Score Tokenization (CLMLDP Algorithm 2): take a candidate iff none of its positions is taken."""
    lengths = np.ones(n, dtype=np.int8)
    taken = np.zeros(n, dtype=np.bool_)
    for c in range(len(starts)):
        first, size = starts[c], sizes[c]
        free = True
        for i in range(first, first + size):
            free = free and not taken[i]
        if free:
            for i in range(first, first + size):
                taken[i] = True
                lengths[i] = 0
            lengths[first] = size
    return lengths


@numba.njit(cache=True)
def _mst_exact(pair_score: Floats, triple_score: Floats, sentence: Ids) -> Lengths:  # pragma: no cover - compiled
    """The segmentation of largest total PMI, by dynamic programming from the right; ties: the longer token."""
    n = len(pair_score)
    best = np.zeros(n + 3)
    choice = np.ones(n, dtype=np.int8)
    for i in range(n - 1, -1, -1):
        # Sums start afresh in every sentence, so that rounding does not depend on the batch around it.
        after = best[i + 1] if i + 1 < n and sentence[i + 1] == sentence[i] else 0.0
        total = after
        if pair_score[i] > -np.inf:
            rest = best[i + 2] if i + 2 < n and sentence[i + 2] == sentence[i] else 0.0
            if pair_score[i] + rest >= total:
                total, choice[i] = pair_score[i] + rest, 2
        if triple_score[i] > -np.inf:
            rest = best[i + 3] if i + 3 < n and sentence[i + 3] == sentence[i] else 0.0
            if triple_score[i] + rest >= total:
                total, choice[i] = triple_score[i] + rest, 3
        best[i] = total
    lengths = np.zeros(n, dtype=np.int8)
    i = 0
    while i < n:
        lengths[i] = choice[i]
        i += choice[i]
    return lengths


def join_tokens(words: Sequence[str], lengths: Lengths, sentence: Ids) -> str:
    """Write sentences as lines: ``_`` joins the words of a token, a space tokens, a line feed ends a sentence.

    Args:
        words: n normal forms.
        lengths: (n,) token lengths.
        sentence: (n,) sentence numbers.

    Returns:
        One line per sentence, each ending in a line feed; "" for no words.
    """
    n = len(words)
    if n == 0:
        return ""
    pieces = np.empty(2 * n, dtype=object)
    pieces[0::2] = words
    glue = np.empty(n, dtype=object)
    glue[:] = " "
    glue[:-1][lengths[1:] == 0] = "_"
    glue[:-1][sentence[1:] != sentence[:-1]] = "\n"
    glue[-1] = "\n"
    pieces[1::2] = glue
    return "".join(pieces.tolist())
