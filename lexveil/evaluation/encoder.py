"""Semantic similarity: texts to vectors, and the cosine of each text with its privatized form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from lexveil.errors import ParameterError
from lexveil.evaluation.base import Encoder
from lexveil.text.encode import Lexicon, encode
from lexveil.types import Floats, Vectors

BLOCK = 4096  # texts at a time


class TfidfMean:
    """The default: mean of the vectors of a text's known words, each weighted by how rare it is among texts.

    The weight of a word is tf · idf, tf its occurrences in the text and idf = ln((1 + n) / (1 + df)) + 1 with df the
    texts it is in out of the n that ``fit`` was given: those in clear, so that one weight serves original and
    privatized texts. This is the smoothed idf of scikit-learn.

    It does not see the order of words, and its vectors are those that noise was added to if it is given the
    mechanism's own embedding: it measures what a bag of words keeps, and is no stand-in for a sentence encoder when
    figures are compared with those of papers.

    Attributes:
        idf: (V,) float64.
        vectors: (V, p) float32.
    """

    name = "tfidf_mean"

    def __init__(self, words: Sequence[str], vectors: Vectors, idf: Floats) -> None:
        if not len(words) == len(vectors) == len(idf):
            raise ParameterError(
                f"the encoder {self.name} was given {len(words):,} words, {len(vectors):,} vectors and {len(idf):,} "
                "idf weights; give one of each per word"
            )
        self.vectors, self.idf = vectors, idf
        self._lexicon = Lexicon.build("word", words, None)

    @classmethod
    def fit(cls, words: Sequence[str], vectors: Vectors, texts: Sequence[str]) -> TfidfMean:
        """Make one, with the idf of ``texts``.

        Args:
            words: V normal forms.
            vectors: (V, p) float32.
            texts: the clean ones.

        Raises:
            ParameterError: if there are not as many words as vectors.
        """
        made = cls(words, vectors, np.ones(len(words)))
        n_with = np.zeros(len(words), dtype=np.int64)
        for start in range(0, len(texts), BLOCK):
            n_with += np.bincount(made._counts(texts[start : start + BLOCK]).indices, minlength=len(words))
        made.idf = np.log((1 + len(texts)) / (1 + n_with)) + 1
        return made

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Weighted means, in blocks of texts."""
        encoded = np.zeros((len(texts), self.vectors.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), BLOCK):
            # Of the vectors' type: a product of two types would copy all vectors for every block.
            weights = (self._counts(texts[start : start + BLOCK]) * self.idf).astype(np.float32)
            total = weights.sum(axis=1)
            encoded[start : start + BLOCK] = weights @ self.vectors / np.where(total > 0, total, 1)[:, None]
        return encoded

    def _counts(self, texts: Sequence[str]) -> csr_array:
        """(n, V) occurrences of each word in each text."""
        tokens = encode(texts, self._lexicon)
        known = tokens.rows >= 0
        ones = np.ones(int(known.sum()))
        shape = (len(texts), len(self.vectors))
        counts = csr_array((ones, (tokens.text_of[known], tokens.rows[known])), shape=shape)
        counts.sum_duplicates()
        return counts


@dataclass(frozen=True, slots=True)
class Similarity:
    """Cosine similarity of n texts with their privatized forms.

    Attributes:
        cosines: (n,) float64 in [-1, 1]; NaN where one of the two has no vector.
        n_original_unknown: originals without any known word.
        n_private_unknown: privatized texts without any known word, those of such originals included.
    """

    cosines: Floats
    n_original_unknown: int
    n_private_unknown: int

    @property
    def n_compared(self) -> int:
        """Texts that have a cosine; mean and standard deviation are of these."""
        return int((~np.isnan(self.cosines)).sum())

    @property
    def mean(self) -> float:
        """NaN if no text could be compared."""
        return float(np.nanmean(self.cosines)) if self.n_compared else float("nan")

    @property
    def sd(self) -> float:
        """Sample standard deviation over texts (n - 1); NaN with fewer than two."""
        return float(np.nanstd(self.cosines, ddof=1)) if self.n_compared > 1 else float("nan")


def similarity(encoder: Encoder, original: Sequence[str], private: Sequence[str]) -> Similarity:
    """Compare each of n texts with its privatized form, in blocks of texts.

    Raises:
        ParameterError: if there are not as many of the one as of the other.
    """
    if len(original) != len(private):
        raise ParameterError(
            f"{len(original):,} original and {len(private):,} privatized texts cannot be compared one by one; "
            "give both sets in the same order, with the same documents"
        )
    cosines = np.empty(len(original))
    unknown = [0, 0]
    for start in range(0, len(original), BLOCK):
        block = slice(start, start + BLOCK)
        pair = [encoder.encode(texts[block]).astype(np.float64) for texts in (original, private)]
        lengths = [np.linalg.norm(vectors, axis=1) for vectors in pair]
        for side, length in enumerate(lengths):
            unknown[side] += int((length == 0).sum())
        product = lengths[0] * lengths[1]
        cosine = np.einsum("np,np->n", *pair) / np.where(product > 0, product, np.nan)
        cosines[block] = np.clip(cosine, -1.0, 1.0)
    return Similarity(cosines, *unknown)
